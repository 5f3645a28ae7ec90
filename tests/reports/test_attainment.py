from types import ModuleType

import numpy as np
import pytest

from s2l.reports.attainment import Attainment, attainment, meets
from s2l.reports.slo import parse_slos


def test_every_objective_has_to_be_met(synthetic: ModuleType) -> None:
    rows = [
        synthetic.request(),  # TTFT 0.2 s, TPOT 0.1 s, ends at 1.5 s
        synthetic.request(first_token_us=1_450_000, last_token_us=1_460_000),
        synthetic.request(output_tokens=1),
        synthetic.failed("timeout", end_us=4_000_000),
        synthetic.failed("unsent", start_us=None, end_us=None),
        synthetic.request(first_token_us=None, last_token_us=None, token_us=[], token_n=[]),
    ]
    requests = synthetic.request_table(*rows)
    slos = parse_slos("ttft_s<300ms,tpot_s<150ms")
    np.testing.assert_array_equal(meets(requests, slos), [True, False, True, False, False, False])
    found = Attainment.of(requests, slos)
    assert found is not None
    assert (found.met, found.sent) == (2, 5)
    assert found.attainment == attainment(requests, slos) == 0.4
    assert found.goodput == 0.5
    assert found.slos == ("ttft_s < 0.3 s", "tpot_s < 0.15 s")


def test_the_limit_itself_is_missed(synthetic: ModuleType) -> None:
    requests = synthetic.request_table(synthetic.request())
    assert not meets(requests, parse_slos("ttft_s<200ms")).any()
    assert meets(requests, parse_slos("ttft_s<201ms")).all()


def test_nothing_divides_by_zero(synthetic: ModuleType) -> None:
    slos = parse_slos("ttft_s<1s")
    empty = synthetic.request_table()
    unsent = synthetic.request_table(synthetic.failed("unsent", start_us=None, end_us=None))
    for table in (empty, unsent):
        found = Attainment.of(table, slos)
        assert found is not None
        assert (found.met, found.sent, found.goodput, found.attainment) == (0, 0, None, None)
        assert attainment(table, slos) is None
    assert Attainment.of(empty, ()) is None


@pytest.mark.parametrize("name", ["ttft_user_s", "ttft_service_s", "ttft_answer_s", "e2e_user_s"])
def test_other_latencies_can_be_limited(synthetic: ModuleType, name: str) -> None:
    requests = synthetic.request_table(synthetic.request())
    assert meets(requests, parse_slos(f"{name}<10s")).all()
    assert not meets(requests, parse_slos(f"{name}<10ms")).any()
