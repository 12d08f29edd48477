"""As much of JSON Schema as protocol/openapi.json uses; a keyword that is not known here is an error, so
that no rule is silently left unchecked."""
import re

SILENT = {"description", "example", "default", "contentEncoding", "title"}
DATE_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def resolve(document, reference):
    target = document
    for name in reference.removeprefix("#/").split("/"):
        target = target[name]
    return target


def members(document, schema):
    """The names of all members that schema describes, and what it is composed of."""
    found = set(schema.get("properties", {}))
    if "$ref" in schema:
        found |= members(document, resolve(document, schema["$ref"]))
    for part in schema.get("allOf", []):
        found |= members(document, part)
    return found


def breaches(document, schema, value, where="$", beside=frozenset()):
    """What is wrong with value, as lines; nothing when it fits. beside: members that are described elsewhere."""
    found = []
    for keyword, rule in schema.items():
        if keyword in SILENT:
            continue
        if keyword == "$ref":
            found += breaches(document, resolve(document, rule), value, where, beside)
        elif keyword == "allOf":
            for part in rule:
                found += breaches(document, part, value, where, beside | members(document, schema))
        elif keyword == "type":
            fits = isinstance(value, TYPES[rule]) and not (rule == "integer" and isinstance(value, bool))
            if not fits:
                return [f"{where}: {value!r} is no {rule}"]
        elif keyword == "properties":
            for name, member in value.items():
                if name in rule:
                    found += breaches(document, rule[name], member, f"{where}.{name}")
                elif name in beside | members(document, schema):
                    continue
                elif schema.get("additionalProperties") is False:
                    found.append(f"{where}: member {name} is not described")
                else:
                    # Clients skip what they do not know; we describe all that we send.
                    found.append(f"{where}: member {name} is sent and not described")
        elif keyword == "additionalProperties":
            pass
        elif keyword == "required":
            found += [f"{where}: member {name} is missing" for name in rule if name not in value]
        elif keyword == "items":
            for i, item in enumerate(value):
                found += breaches(document, rule, item, f"{where}[{i}]")
        elif keyword == "enum":
            found += [] if value in rule else [f"{where}: {value!r} is none of {rule}"]
        elif keyword == "const":
            found += [] if value == rule else [f"{where}: {value!r} is not {rule!r}"]
        elif keyword == "minimum":
            found += [] if value >= rule else [f"{where}: {value} is below {rule}"]
        elif keyword == "maximum":
            found += [] if value <= rule else [f"{where}: {value} is above {rule}"]
        elif keyword == "minLength":
            found += [] if len(value) >= rule else [f"{where}: shorter than {rule}"]
        elif keyword == "maxLength":
            found += [] if len(value) <= rule else [f"{where}: longer than {rule}"]
        elif keyword == "pattern":
            found += [] if re.search(rule, value) else [f"{where}: {value!r} does not match {rule}"]
        elif keyword == "format":
            if rule != "date-time":
                raise ValueError(f"format {rule} is not known")
            found += [] if DATE_TIME.match(value) else [f"{where}: {value!r} is no time"]
        else:
            raise ValueError(f"{where}: keyword {keyword} is not known to this validator")
    return found
