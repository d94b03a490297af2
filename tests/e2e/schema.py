"""Holds a JSON value against a schema: as much of JSON Schema (2020-12) as docs/report.schema.json uses."""

TYPES = {"string": str, "integer": int, "boolean": bool, "null": type(None), "array": list, "object": dict}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum", "const"}


def is_a(value, name):
    return isinstance(value, TYPES[name]) and (name != "integer" or not isinstance(value, bool))


def misfits(value, schema, root, at="$"):
    """What does not fit, as texts."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        yield from misfits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
        return
    names = schema.get("type", list(TYPES))
    if not any(is_a(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{at}: {value!r} is no {names}"
        return
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{at}: {value!r} is none of {schema.get('enum', schema.get('const'))}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{at}: '{key}' is missing" for key in schema.get("required", []) if key not in value)
        if not schema.get("additionalProperties", True):
            yield from (f"{at}: '{key}' is unknown" for key in value if key not in known)
        for key in value.keys() & known.keys():
            yield from misfits(value[key], known[key], root, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from misfits(item, schema["items"], root, f"{at}[{i}]")
