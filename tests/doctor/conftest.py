import pytest
from sick_machine import Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)
