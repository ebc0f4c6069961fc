"""What is shown of a run tells no secrets of the request that caused it."""

from __future__ import annotations

from trunkline.actors.core.values.hidden_secrets import HIDDEN, without_secrets


def test_passwords_and_proofs_are_hidden_at_any_depth() -> None:
    data = {
        "body": {"email": "ada@example.com", "Password": "Wordy-1!", "more": [{"password": 1}]},
        "headers": {"authorization": "Bearer x", "cookie": "a=b", "host": "h"},
        "cookies": {"authorization": "x", "theme": "dark"},
    }
    assert without_secrets(data) == {
        "body": {"email": "ada@example.com", "Password": HIDDEN, "more": [{"password": HIDDEN}]},
        "headers": {"authorization": HIDDEN, "cookie": HIDDEN, "host": "h"},
        "cookies": {"authorization": HIDDEN, "theme": "dark"},
    }


def test_keys_of_apis_are_hidden_by_their_names() -> None:
    names = ["X-Api-Key", "apiKey", "acme_api_key", "X-Auth-Token", "accessToken", "Proxy-Authorization"]
    assert without_secrets(dict.fromkeys([*names, "set-cookie"], "topsecret")) == dict.fromkeys(
        [*names, "set-cookie"], HIDDEN
    )
    plain = {"nextPageToken": "2", "apiKeys": [1], "key": "k", "X-Kind": "Tank"}
    assert without_secrets(plain) == plain


def test_tokens_and_secrets_of_keys_are_hidden_in_any_text() -> None:
    token = f"eyJ{'a' * 30}.eyJ{'b' * 30}.{'c-_' * 14}"
    data = {
        "made": {"id": "1", "token": token, "secret": "s"},
        "header": [f"Bearer {token}"],
        "csvResult": "deviceId,accessKey,accessSecret,error\r\n1,2,3,\r\n",
        "near": "eyJ.eyJ.c",
    }
    assert without_secrets(data) == {
        "made": {"id": "1", "token": HIDDEN, "secret": HIDDEN},
        "header": [f"Bearer {HIDDEN}"],
        "csvResult": HIDDEN,
        "near": "eyJ.eyJ.c",
    }
