"""s2l: capture how retrieved context arrives, replay it, and report what streaming it saves."""

from pkgutil import extend_path

# In a checkout's root Python meets this folder before the installed package; it holds the program
# alone, and the other parts are found where they are installed.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
