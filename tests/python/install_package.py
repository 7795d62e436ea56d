"""Installs the Python package into a virtual environment, as a wheel of a build that is there.

Usage: install_package.py BUILDER PACKAGE BUILD ENVIRONMENT
"""

import pathlib
import shutil
import subprocess
import sys

def main(builder, package, build, environment):
    environment = pathlib.Path(environment)
    shutil.rmtree(environment, ignore_errors=True)
    wheels = environment / "wheels"
    subprocess.run([builder, "-m", "venv", environment], check=True)
    subprocess.run([builder, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
                    "--config-settings", f"cmake.define.CONTEXTUNE_BUILD={build}", "--wheel-dir", wheels,
                    package], check=True)
    (wheel,) = wheels.glob("contextune-*.whl")
    subprocess.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index",
                    wheel], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
