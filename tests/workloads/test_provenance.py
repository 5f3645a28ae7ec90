"""Counting what is known of the right to documents."""

from dataclasses import replace

from s2l.workloads.document import Document
from s2l.workloads.provenance import ALLOWED, LICENCE, ROBOTS, DocumentRights, document_rights


def test_documents_are_counted_by_licence_and_robots() -> None:
    plain = Document.of_text(url="http://s/", title="", text="a")
    said = replace(plain, meta={LICENCE: "CC-BY-4.0", ROBOTS: ALLOWED})
    odd = replace(plain, meta={LICENCE: 7, ROBOTS: ""})
    assert document_rights([said, plain, said, odd]) == DocumentRights(
        {"CC-BY-4.0": 2, "unknown": 2}, {"allowed": 2, "unknown": 2}
    )


def test_the_many_rare_ones_are_summed_up() -> None:
    plain = Document.of_text(url="http://s/", title="", text="a")
    found = document_rights(replace(plain, meta={LICENCE: f"L{n:02}"}) for n in range(25))
    assert len(found.licences) == 21
    assert found.licences["others"] == 5
