"""Runs a command with a terminal as its standard error, and as its standard output too if asked for.

usage: terminal.py both|stderr COMMAND...

Prints what the terminal has received, and ends with the command's exit code.
"""

import os
import pty
import subprocess
import sys


def main(which: str, command: list[str]) -> int:
    terminal, slave = pty.openpty()
    stdout = slave if which == "both" else subprocess.DEVNULL
    with subprocess.Popen(command, stdout=stdout, stderr=slave) as process:
        os.close(slave)
        while True:
            try:
                received = os.read(terminal, 65536)
            except OSError:  # Linux says so when the command has closed it.
                break
            if not received:
                break
            sys.stdout.buffer.write(received)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
