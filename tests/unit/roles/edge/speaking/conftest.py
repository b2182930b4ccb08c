from tests.support.socket_forms import socket_form

__all__ = ["socket_form"]
