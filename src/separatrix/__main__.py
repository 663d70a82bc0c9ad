"""Run the command line tool as ``python -m separatrix``."""

from separatrix.cli import program

if __name__ == "__main__":
    program()
