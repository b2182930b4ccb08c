import pytest


@pytest.fixture(autouse=True)
def _patient(patient: None) -> None:
    """Let what a test itself asks Redis wait longer, as the roles do that it starts (`patient_fleet`)."""
