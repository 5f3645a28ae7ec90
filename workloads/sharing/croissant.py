"""``croissant.json``: the dataset in the vocabulary of MLCommons Croissant 1.0.

Fields and terms: the format's specification, docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from s2l.workloads.manifest import FileEntry, Manifest
from s2l.workloads.schema import FORMATS, RowFormat
from s2l.workloads.sharing.file_names import is_table

_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_PARQUET: Final = "application/x-parquet"


def croissant(manifest: Manifest) -> bytes:
    """The bytes of ``croissant.json``; only tables are described."""
    tables = [entry for entry in manifest.files if is_table(entry.path)]
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": manifest.name,
        "description": "A trace of how context arrived for questions to a language model.",
        "license": manifest.licence,
        "datePublished": manifest.created_utc,
        "dateCreated": manifest.created_utc,
        "version": "1.0.0",
        "dataCollection": f"{manifest.collector.name} {manifest.collector.version}",
        "distribution": [*map(_file, tables), *map(_file_set, FORMATS)],
        "recordSet": [_record_set(rows) for rows in FORMATS],
    }
    return json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n"


def _file(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.path,
        "name": entry.path,
        "contentUrl": entry.path,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": _PARQUET,
        "sha256": entry.sha256,
    }


def _file_set(rows: RowFormat[Any]) -> dict[str, Any]:
    pattern = "queries.parquet" if rows.name == "queries" else f"{rows.name}/*.parquet"
    return {
        "@type": "cr:FileSet",
        "@id": f"{rows.name}-files",
        "name": f"{rows.name}-files",
        "encodingFormat": _PARQUET,
        "includes": pattern,
    }


def _record_set(rows: RowFormat[Any]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": rows.name,
        "name": rows.name,
        "field": list(_fields(rows)),
    }


def _fields(rows: RowFormat[Any]) -> Iterator[dict[str, Any]]:
    for column in rows.schema:
        whole = pa.types.is_integer(
            column.type.value_type if pa.types.is_list(column.type) else column.type
        )
        field = {
            "@type": "cr:Field",
            "@id": f"{rows.name}/{column.name}",
            "name": f"{rows.name}/{column.name}",
            "dataType": "sc:Integer" if whole else "sc:Text",
            "source": {
                "fileSet": {"@id": f"{rows.name}-files"},
                "extract": {"column": column.name},
            },
        }
        yield {**field, "repeated": True} if pa.types.is_list(column.type) else field
