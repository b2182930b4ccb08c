"""The settings of commands that use control."""

from pydantic import SecretStr

from fleet.ground.settings.fields import SettingGroup, setting


class ControlClientGroup(SettingGroup):
    """How `fleet devices` and other commands reach a control on another machine."""

    title = "Commands"

    control_url: str | None = setting(None, (), syntax="http(s)://host:port", unset="the `fleet up` of this machine")
    """Address of control for commands. FLEET_TLS_CA names the authority of its certificate, if that is a private
    one."""
    control_token: SecretStr | None = setting(None, (), masked="value")
    """Token of control for commands: `fleet tokens`."""
