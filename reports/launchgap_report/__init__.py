"""Draws the report page of a launchgap session from the tables that any user can read.

Statistics and verdicts are made by the C++ program; this package only shows them.
"""
