"""The client's own error on this machine, measured before the first replay."""

from typing import Any

from s2l.progress import say
from s2l.replayer.calibration import calibrate, calibrated
from s2l.serving_adapter.base import ServingError


class Calibration:
    """``RunInfo.calibration``, found when it is first asked for and then kept.

    Where it is ``wanted`` it is measured anew; where None says nothing, it is what was measured on
    this machine once, or now. It is None where it is not wanted, or failed.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = wanted
        self._asked = wanted is False
        self._found: dict[str, Any] | None = None

    async def get(self) -> dict[str, Any] | None:
        """The client's error; it takes some four seconds to measure."""
        if not self._asked:
            self._asked = True
            self._found = await self._measured()
        return self._found

    async def _measured(self) -> dict[str, Any] | None:
        try:
            return await (calibrate() if self._wanted else calibrated())
        except (ServingError, OSError) as error:
            say(f"the client's own error could not be measured: {error}")
            return None
