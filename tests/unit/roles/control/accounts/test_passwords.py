from fleet.roles.control.accounts.passwords import Passwords


def test_a_hash_and_that_of_nobody_cost_32_mib_and_three_passes() -> None:
    """Tests of routes make them cheaper (`tests/support/control_server.py`)."""
    passwords = Passwords()
    for kept in (passwords._hasher.hash("correct horse battery"), passwords.nobody):
        assert kept.startswith("$argon2id$v=19$m=32768,t=3,p=1$")
    passwords.close()
