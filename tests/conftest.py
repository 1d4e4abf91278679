"""What all tests share: nothing is written to the user's own folders."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache_folder(tmp_path_factory):
    """Censuses are kept in a temporary folder, by this process and those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINADD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
