"""Whether a real framework trains under `launchgap record` as it does without, and what is said where it uses no GPU.

    python3 tests/experiments/record_frameworks.py --torch PYTHON --tensorflow PYTHON

PYTHON is one that has the framework. On a machine without a GPU nothing can be recorded: standard output and exit code must
be the same, and the reason must be the one that `launchgap doctor -- PROGRAM` finds. What it said once is in
record_frameworks.txt.
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile

LAUNCHGAP = pathlib.Path(__file__).parents[2] / "build" / "bin" / "launchgap"
TRAIN = {
    "torch": """
import torch
torch.manual_seed(1)
model = torch.nn.Linear(64, 8)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.ones(32, 64)).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(torch.__version__, "loss", round(loss.item(), 6), "GPU", torch.cuda.is_available())
raise SystemExit(5)
""",
    "tensorflow": """
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("sgd", "mse")
history = model.fit(tf.ones([32, 64]), tf.zeros([32, 8]), epochs=2, verbose=0)
print(tf.__version__, "loss", round(history.history["loss"][-1], 6), "GPU", tf.config.list_physical_devices("GPU"))
raise SystemExit(5)
""",
}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    for framework in TRAIN:
        parser.add_argument(f"--{framework}", required=True)
    options = vars(parser.parse_args())
    for framework, script in TRAIN.items():
        program = (options[framework], "-c", script)
        with tempfile.TemporaryDirectory() as folder:
            plain = run(*program)
            recorded = run(LAUNCHGAP, "record", "-o", f"{folder}/s", "--", *program)
            run(LAUNCHGAP, "doctor", "--json", f"{folder}/doctor.json", "--", *program)
            found = json.loads(pathlib.Path(folder, "doctor.json").read_text(encoding="utf-8"))["findings"][0]["code"]
        code = re.search(r"\[launchgap doctor --explain (\S+)\]", recorded.stderr)
        same = (plain.stdout, plain.returncode) == (recorded.stdout, recorded.returncode)
        print(f"{framework}: {plain.stdout.strip()}, exit code {plain.returncode}")
        print(f"  recorded: {'the same' if same else recorded.stdout + recorded.stderr}")
        print(f"  why nothing was recorded: {code[1] if code else 'it was recorded'}; the doctor: {found}")


if __name__ == "__main__":
    main()
