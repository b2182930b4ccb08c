from fleet.adapters.speech.simplified import simplify


def test_traditional_characters_become_simplified() -> None:
    assert simplify("打開客廳的燈，把音量調到百分之三十") == "打开客厅的灯，把音量调到百分之三十"


def test_simplified_text_and_other_scripts_stay() -> None:
    text = "打开客厅的灯 OK 123 テスト"
    assert simplify(text) == text
