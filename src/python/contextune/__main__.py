"""`python -m contextune run -- python train.py`: the command `contextune`."""

from contextune._command import main

if __name__ == "__main__":
    main()
