"""What an editor shows of the types of nodes: their category, and the settings of their `config`, in a useful order.

It is for people who draw workflows, and decides nothing: what a node takes, its file decides. A test compares the two.
Objects, and lists that may also be something else, are not described; an editor shows them as JSON. The module is long
because there are many types.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Category = Literal["data", "experience", "logic", "output", "debug"]
Kind = Literal[
    "text", "template", "longTemplate", "expression", "path", "number", "flag", "choice", "rows", "texts",
    "flags", "json",
]  # fmt: skip
"""`template` gives a text and `number` a number, `longTemplate` has several lines, `path` leads into the payload,
`text` is taken as it is, `rows` is a list of objects, `texts` one of texts or templates, `flags` one of a boolean for
each option (by default true), and `json` is a list or an object."""


class Setting(NamedTuple):
    """A setting of a type of node, or of each row of a list.

    Without `options`, any value of its kind. The first option of a choice is the default, unless one is needed. A flag
    that `is_on` is true unless it is set to false.
    """

    name: str
    kind: Kind
    is_needed: bool = False
    options: tuple[str, ...] = ()
    rows: tuple[Setting, ...] = ()
    is_on: bool = False


class Form(NamedTuple):
    """What an editor shows of a type of node."""

    category: Category
    settings: tuple[Setting, ...] = ()


def _text(name: str) -> Setting:
    return Setting(name, "text")


def _template(name: str) -> Setting:
    return Setting(name, "template")


def _long(name: str) -> Setting:
    return Setting(name, "longTemplate")


def _expression(name: str) -> Setting:
    return Setting(name, "expression")


def _path(name: str) -> Setting:
    return Setting(name, "path")


def _number(name: str) -> Setting:
    return Setting(name, "number")


def _flag(name: str, *, is_on: bool = False) -> Setting:
    return Setting(name, "flag", is_on=is_on)


def _json(name: str) -> Setting:
    return Setting(name, "json")


def _choice(name: str, *options: str) -> Setting:
    return Setting(name, "choice", options=options)


def _rows(name: str, *settings: Setting) -> Setting:
    return Setting(name, "rows", rows=settings)


def _texts(name: str) -> Setting:
    return Setting(name, "texts")


def _needed(setting: Setting) -> Setting:
    return setting._replace(is_needed=True)


_RESULT: Final = _path("resultPath")
_NEEDED_RESULT: Final = _needed(_RESULT)
_KEY_AND_VALUE: Final = (_template("keyTemplate"), _template("valueTemplate"))
_NEEDED_KEY: Final = (_needed(_template("keyTemplate")), _template("valueTemplate"))
_TAG: Final = (_template("key"), _template("value"))
_METHOD: Final = _choice("dataMethod", "individualFields", "jsonTemplate", "payloadPath")
_ERRORS: Final = (_choice("errorBehavior", "throw", "payloadPath"), _path("errorPath"))
_PAGE: Final = (
    _flag("findMultiple"), _flag("findMetadata"), _text("sortField"), _choice("sortDirection", "asc", "desc"),
    _template("resultsPage"), _template("resultsPerPage"),
)  # fmt: skip
_SHOWN: Final = (_flag("tagsAsObject"), _flag("attributesAsObject"), _RESULT)
_DEVICE: Final = (
    _METHOD, _template("nameTemplate"), _template("descriptionTemplate"), _template("deviceClassTemplate"),
    _template("gatewayIdTemplate"), _template("parentIdTemplate"), _rows("deviceTags", *_KEY_AND_VALUE),
    _rows(
        "deviceAttributes", _template("nameTemplate"), _template("dataTypeTemplate"),
        _template("contentTypeTemplate"), _template("descriptionTemplate"),
    ),
    _number("systemIntervalTemplate"), _template("keepDuplicatesTemplate"), _long("deviceJsonTemplate"),
    _path("devicePayloadPath"),
)  # fmt: skip
_EVENT: Final = (
    _template("levelTemplate"), _template("stateTemplate"), _template("subjectTemplate"),
    _template("deviceIdTemplate"), _rows("eventTags", *_KEY_AND_VALUE),
    _choice("dataSourceType", "payloadPath", "jsonTemplate"), _path("dataSourcePath"),
    _long("dataSourceJson"), _long("eventJsonTemplate"), _path("eventPayloadPath"),
)  # fmt: skip
_GROUP: Final = (
    _METHOD, _template("nameTemplate"), _template("descriptionTemplate"), _template("parentIdTemplate"),
    _rows("groupTags", *_NEEDED_KEY), _rows("groupTagTemplates", *_NEEDED_KEY), _texts("membersToAdd"),
    _long("deviceQueryJsonTemplate"), _long("groupJsonTemplate"), _path("groupPayloadPath"),
)  # fmt: skip
_USER: Final = (
    _METHOD, _template("emailTemplate"), _template("passwordTemplate"), _template("firstNameTemplate"),
    _template("lastNameTemplate"), _texts("groupIdTemplates"), _rows("userTags", *_NEEDED_KEY),
    _long("userJsonTemplate"), _path("userPayloadPath"),
)  # fmt: skip
_ROW: Final = (
    _METHOD,
    _rows("rowFields", _needed(_template("columnTemplate")), _template("valueTemplate")),
    _long("rowJsonTemplate"),
    _path("rowPayloadPath"),
)
_TABLE: Final = _needed(_template("dataTableIdTemplate"))
_SERIES: Final = (
    _choice("findMethod", "tagsIds", "tags", "deviceIds", "payloadPath", "query", "expUser", "expGroupId", "parentId"),
    _texts("deviceIds"), _rows("deviceTags", *_TAG), _path("deviceIdsPath"), _long("queryTemplate"),
    _template("expUserTemplate"), _template("expGroupIdTemplate"), _template("parentIdTemplate"), _texts("attribute"),
    _number("duration"), _template("end"), _template("aggregation"),
    _rows("aggregationOptions", *_KEY_AND_VALUE), _flag("perDeviceResults"), _RESULT,
    *_ERRORS,
)  # fmt: skip
_BODY: Final = (
    _choice("bodyTemplateType", "string", "path", "json", "payload", "none"), _long("bodyTemplate"),
    _template("responseCodeTemplate"), _rows("headerInfo", *_KEY_AND_VALUE),
)  # fmt: skip
_SIGNER: Final = (
    _template("secretTemplate"), _template("algorithmTemplate"), _template("issuerTemplate"),
    _template("credentialNameTemplate"),
)  # fmt: skip
_PAYLOAD: Final = (_long("payloadTemplate"), _choice("payloadTemplateType", "json", "string", "path"))
_FROM_TO: Final = (_needed(_path("source")), _needed(_path("destination")))
_COLUMNS: Final = (
    _template("delimiterTemplate"), _template("quoteCharTemplate"), _template("escapeCharTemplate"),
    _template("recordDelimiterTemplate"),
)  # fmt: skip
_ARRAY_OPERATION: Final = _needed(_choice(
    "type", "compact", "concat", "deduplicate", "deduplicateBy", "filter", "flatten", "groupBy",
    "indexOf", "insertAt", "keyBy", "length", "lookupAt", "pop", "push", "removeAt", "replaceAt",
    "reverse", "shift", "slice", "sort", "sortBy", "sum", "unshift",
))  # fmt: skip
_OBJECT_OPERATION: Final = _needed(_choice(
    "type", "assign", "entries", "fromPairs", "keys", "mergeDeep", "omit", "pick", "values",
    "zipObject",
))  # fmt: skip

FORMS: Final[dict[str, Form]] = {
    "AnnotationNode": Form("debug"),
    "ArrayNode": Form(
        "logic",
        (
            _needed(_path("sourceArrayPath")),
            _rows(
                "rules",
                _ARRAY_OPERATION,
                _template("inputTemplate"),
                _number("indexTemplate"),
                _choice("order", "ascending", "descending"),
                _path("outputPath"),
            ),
            _path("destArrayPath"),
        ),
    ),
    "Base64DecodeNode": Form("data", (*_FROM_TO, _flag("stringOutput"))),
    "Base64EncodeNode": Form("data", _FROM_TO),
    "BranchOnChangeNode": Form(
        "logic",
        (
            _needed(_path("valuePath")),
            _choice(
                "changeType", "any", "percent", "percentInc", "percentDec", "value", "valueInc", "valueDec"
            ),
            _number("changeThreshold"),
            _template("onChangeIdTemplate"),
            _path("prevValuePath"),
        ),
    ),
    "CSVDecodeNode": Form("data", (*_FROM_TO, *_COLUMNS, _flag("stripBom"))),
    "CSVEncodeNode": Form(
        "data",
        (
            *_FROM_TO,
            _choice("headerTemplateType", "objectKeys", "stringTemplates", "payloadPath"),
            _json("headerTemplate"),
            *_COLUMNS,
        ),
    ),
    "ConditionalNode": Form("logic", (_needed(_expression("expression")),)),
    "CreateDeviceNode": Form("data", (_template("recipeIdTemplate"), *_DEVICE, *_SHOWN)),
    "CreateEventNode": Form(
        "data",
        (
            _METHOD,
            _template("messageTemplate"),
            *_EVENT,
            _choice("timeSourceType", "now", "payloadTime", "payloadPath"),
            _path("timeSourcePath"),
            _flag("disableTagChangeTracking"),
            _RESULT,
        ),
    ),
    "CreateExperienceGroupNode": Form("experience", (*_GROUP, _RESULT)),
    "CreateExperienceUserNode": Form("experience", (*_USER, _RESULT)),
    "CustomNodeCapNode": Form("logic", (_path("resultSourcePath"), _number("branchIndexTemplate"))),
    "CustomNodeExecuteNode": Form(
        "logic",
        (
            _needed(_text("customNodeId")),
            _text("customNodeVersion"),
            _json("fields"),
            _flag("isInstance"),
            _RESULT,
        ),
    ),
    "DataTableDeleteRowNode": Form(
        "data",
        (_TABLE, _template("rowIdTemplate"), _long("queryTemplate"), _template("limitTemplate"), _RESULT),
    ),
    "DataTableInsertRowNode": Form("data", (_TABLE, *_ROW, _RESULT)),
    "DataTableQueryNode": Form(
        "data",
        (
            _TABLE,
            _long("queryTemplate"),
            _template("limitTemplate"),
            _template("offsetTemplate"),
            _template("sortColumnTemplate"),
            _template("sortDirectionTemplate"),
            _json("includeFieldsTemplate"),
            _NEEDED_RESULT,
        ),
    ),
    "DataTableUpdateRowNode": Form(
        "data",
        (
            _TABLE,
            _choice("rowSelectType", "id", "query"),
            _template("rowIdTemplate"),
            _long("queryTemplate"),
            *_ROW,
            _flag("upsertCheck"),
            _RESULT,
        ),
    ),
    "DateTimeNode": Form(
        "logic",
        (
            _choice(
                "operation",
                "add",
                "subtract",
                "format",
                "getDatePart",
                "setDatePart",
                "diff",
                "daysInMonth",
                "startOfTime",
                "startOf",
                "toArray",
                "toObject",
                "unixTimestampSeconds",
                "unixTimestampMilliseconds",
            ),
            _path("sourcePath"),
            _text("sourceFormatString"),
            _number("numberValue"),
            _text("unit"),
            _path("diffDataPath"),
            _text("diffDataFormatString"),
            _template("timezone"),
            _template("resultFormatString"),
            _RESULT,
        ),
    ),
    "DebugNode": Form(
        "debug",
        (_template("message"), _path("property"), _choice("level", "info", "verbose", "warn", "error")),
    ),
    "DelayNode": Form("logic", (_number("delay"),)),
    "DeleteEventNode": Form(
        "data",
        (
            _template("eventIdTemplate"),
            _long("queryTemplate"),
            _text("sortField"),
            _text("sortDirection"),
            _flag("deleteMultiple", is_on=True),
            _RESULT,
        ),
    ),
    "DeleteExperienceGroupNode": Form("experience", (_needed(_template("groupIdTemplate")), _RESULT)),
    "DeleteExperienceUserNode": Form("experience", (_needed(_template("emailOrIdTemplate")), _RESULT)),
    "DeviceChangeStateNode": Form(
        "output",
        (
            _needed(_template("deviceId")),
            _choice("deviceIdTemplateType", "stringTemplate", "jsonPath"),
            _choice("attrDataMethod", "individualFields", "jsonTemplate", "payloadPath"),
            _rows("attrInfos", _needed(_template("key")), _template("valueTemplate")),
            _long("attrJsonTemplate"),
            _path("attrPayloadPath"),
            _choice("timeSourceType", "payloadTime", "now", "payloadPath"),
            _path("timeSourcePath"),
            _template("metaTemplate"),
            _choice("metaTemplateType", "stringTemplate", "jsonTemplate", "jsonPath"),
            _template("flowVersionTemplate"),
            _RESULT,
        ),
    ),
    "DeviceDeleteWorkflowNode": Form(
        "data",
        (
            _choice("dataMethod", "id", "query"),
            _template("deviceIdTemplate"),
            _long("deviceQueryJsonTemplate"),
            _RESULT,
        ),
    ),
    "DeviceSendCommandNode": Form(
        "output",
        (
            _needed(_template("nameTemplate")),
            *_PAYLOAD,
            _texts("sendToDeviceIds"),
            _rows("sendToDeviceTags", *_TAG),
            _path("deviceIdsPath"),
            _long("deviceQueryJsonTemplate"),
            _number("ttlSecondsTemplate"),
        ),
    ),
    "EndpointReplyNode": Form(
        "output",
        (
            _choice("replyType", "custom", "page", "redirect", "mqtt"),
            *_BODY,
            _template("pageIdTemplate"),
            _template("layoutIdTemplate"),
            _text("experienceVersion"),
            _rows(
                "cookieInfo",
                _template("nameTemplate"),
                _template("valueTemplate"),
                _number("maxAgeTemplate"),
                _template("pathTemplate"),
            ),
            _template("sameSiteTemplate"),
            _path("replyIdPath"),
        ),
    ),
    "ExperienceGroupSummaryNode": Form("experience", (_template("idTemplate"), _NEEDED_RESULT)),
    "ExperienceUserAuthNode": Form(
        "experience",
        (
            _template("emailTemplate"),
            _template("passwordTemplate"),
            _template("tokenTemplate"),
            _flag("invalidateExistingTokens"),
            _template("ttlTemplate"),
            _long("extraDataJsonTemplate"),
            _path("userResultPath"),
            _path("tokenResultPath"),
        ),
    ),
    "ExperienceUserTokenNode": Form(
        "experience",
        (
            _needed(_template("emailOrIdTemplate")),
            _flag("treatAsLogin"),
            _flag("invalidateExistingTokens"),
            _template("ttlTemplate"),
            _long("extraDataJsonTemplate"),
            _NEEDED_RESULT,
        ),
    ),
    "FileCreateNode": Form(
        "data",
        (
            _needed(_template("fileNameTemplate")),
            _template("parentDirectoryTemplate"),
            _flag("private"),
            _long("fileContentsTemplate"),
            _template("encodingTemplate"),
            _template("fileUrlTemplate"),
            _template("contentTypeTemplate"),
            _flag("shouldOverwrite"),
            _number("urlTTLTemplate"),
            _RESULT,
        ),
    ),
    "FileGetNode": Form(
        "data",
        (
            _needed(_template("filePathTemplate")),
            _flag("private"),
            _template("encodingTemplate"),
            _flag("isDownloadURL"),
            _number("urlTTLTemplate"),
            _needed(_path("destination")),
        ),
    ),
    "GaugeNode": Form("data", _SERIES),
    "GenerateIdNode": Form(
        "logic",
        (
            _template("idTypeTemplate"),
            _template("namespaceTemplate"),
            _template("valueTemplate"),
            _number("numCharactersTemplate"),
            _needed(_path("destinationPath")),
        ),
    ),
    "GeofenceNode": Form(
        "logic",
        (
            _choice("checkType", "radius", "polygonCoords", "polygon"),
            _needed(_template("gpsCheck")),
            _template("gpsCenter"),
            _number("radius"),
            _long("polygonCoords"),
            _path("polygonPath"),
            _path("branchPath"),
            _RESULT,
        ),
    ),
    "GetDeviceNode": Form(
        "data",
        (
            _choice(
                "findMethod",
                "id",
                "name",
                "findByAllTags",
                "findByAnyTags",
                "findByParentId",
                "experienceGroupId",
                "experienceUserIdOrEmail",
                "query",
            ),
            _template("idTemplate"),
            _template("parentIdTemplate"),
            _rows("tags", *_KEY_AND_VALUE),
            _long("queryTemplate"),
            *_PAGE,
            _flag("includeState"),
            _texts("attributes"),
            _flag("includeConnectionStatus", is_on=True),
            *_SHOWN,
        ),
    ),
    "GetEventNode": Form(
        "data",
        (
            _template("eventIdTemplate"),
            _long("queryTemplate"),
            _flag("findMultiple"),
            _flag("findMetadata"),
            _text("sortField"),
            _text("sortDirection"),
            _template("resultsPage"),
            _template("resultsPerPage"),
            _NEEDED_RESULT,
        ),
    ),
    "GetExperienceGroupNode": Form(
        "experience",
        (
            _choice("findMethod", "id", "name", "findByAllTags", "findByAnyTags", "query"),
            _template("idTemplate"),
            _rows("tags", *_KEY_AND_VALUE),
            _long("queryTemplate"),
            *_PAGE,
            _RESULT,
        ),
    ),
    "GetExperienceUserNode": Form(
        "experience",
        (
            _choice("findMethod", "emailOrId", "userTags", "query"),
            _template("emailOrIdTemplate"),
            _rows("userTags", *_KEY_AND_VALUE),
            _long("queryTemplate"),
            *_PAGE,
            _RESULT,
        ),
    ),
    "GetValueNode": Form(
        "data",
        (
            _template("keyName"),
            _flag("getAll"),
            _template("defaultValue"),
            _choice("defaultValueType", "template", "json", "number", "path"),
            _needed(_path("valuePath")),
        ),
    ),
    "HashNode": Form(
        "logic",
        (
            _needed(_template("dataTemplate")),
            _template("dataEncodingTemplate"),
            _template("algorithmTemplate"),
            _template("secretTemplate"),
            _template("secretEncodingTemplate"),
            _template("encodingTemplate"),
            _needed(_path("destinationPath")),
        ),
    ),
    "HtmlParserNode": Form(
        "data",
        (
            _needed(_path("documentPath")),
            _template("selectorTemplate"),
            _template("resultFormatTemplate"),
            _NEEDED_RESULT,
        ),
    ),
    "HttpNode": Form(
        "data",
        (
            _choice("method", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
            _needed(_template("uriTemplate")),
            _rows("headerInfo", _text("key"), _template("valueTemplate")),
            _choice("bodyType", "string", "jsonTemplate", "multipart", "urlencoded", "url", "none"),
            _long("bodyTemplate"),
            _rows("bodyFields", *_KEY_AND_VALUE),
            _template("requestEncodingTemplate"),
            _choice("authType", "none", "basic", "clientCert", "credential"),
            _template("credentialNameTemplate"),
            _json("authCredentials"),
            _number("timeoutTemplate"),
            _template("encodingTemplate"),
            _flag("disableRedirects"),
            _flag("disableSSLVerification"),
            _long("caCertTemplate"),
            _path("responsePath"),
            *_ERRORS,
        ),
    ),
    "JWTCreateNode": Form(
        "data",
        (
            _choice("dataTemplateType", "json", "path"),
            _needed(_long("dataTemplate")),
            _choice("headerTemplateType", "json", "path"),
            _long("headerTemplate"),
            *_SIGNER,
            _number("expiresIn"),
            _needed(_path("destinationPath")),
        ),
    ),
    "JWTDecodeNode": Form(
        "data", (_needed(_template("tokenTemplate")), _flag("complete"), _needed(_path("destinationPath")))
    ),
    "JWTVerifyNode": Form("data", (_needed(_template("tokenTemplate")), *_SIGNER, _path("errorPath"))),
    "JsonDecodeNode": Form("data", (_needed(_path("source")), _path("destination"), *_ERRORS)),
    "JsonEncodeNode": Form("data", (_needed(_path("source")), _path("destination"), *_ERRORS)),
    "LatchNode": Form(
        "logic",
        (
            _expression("latchExpression"),
            _expression("resetExpression"),
            _template("latchIdTemplate"),
            _path("latchResultPath"),
            _path("resetResultPath"),
            _path("wasLatchedPath"),
            _path("isLatchedPath"),
            _path("branchPath"),
        ),
    ),
    "LoopCapNode": Form("logic", (_path("mapValuePath"), _flag("shouldBreak"))),
    "LoopNode": Form(
        "logic",
        (
            _needed(_path("loopSourcePath")),
            _path("currentItemPath"),
            _flag("parallel"),
            _path("mapResultPath"),
            _path("mapValuePath"),
        ),
    ),
    "LosantApiNode": Form(
        "data",
        (
            _needed(_text("resource")),
            _needed(_text("action")),
            _rows("params", _text("name"), _choice("type", "string", "json", "path"), _long("value")),
            _template("apiTokenTemplate"),
            _template("applicationIdTemplate"),
            _path("responsePath"),
        ),
    ),
    "MathNode": Form("logic", (_rows("statements", _needed(_expression("expression")), _NEEDED_RESULT),)),
    "MqttMessageNode": Form(
        "output", (_needed(_template("topicTemplate")), _long("messageTemplate"), _text("integrationId"))
    ),
    "MutateNode": Form(
        "logic",
        (
            _rows(
                "rules",
                _choice("type", "set", "copy", "move", "remove"),
                _path("source"),
                _path("destination"),
                _choice("valueTemplateType", "string", "json"),
                _long("valueTemplate"),
            ),
        ),
    ),
    "ObjectNode": Form(
        "logic",
        (
            _path("sourcePath"),
            _rows(
                "operations",
                _OBJECT_OPERATION,
                _path("outputPath"),
                _long("inputTemplate"),
            ),
            _path("destPath"),
        ),
    ),
    "RandomNumberNode": Form("logic", (_number("min"), _number("max"), _NEEDED_RESULT)),
    "RawFunctionNode": Form("logic", (_long("script"), _path("scopePath"))),
    "SendgridEmailNode": Form(
        "output",
        (
            _template("credentialNameTemplate"),
            _template("sendgridApiKey"),
            _needed(_template("fromTemplate")),
            _needed(_texts("toAddresses")),
            _texts("ccAddresses"),
            _texts("bccAddresses"),
            _template("replyToTemplate"),
            _needed(_template("subjectTemplate")),
            _needed(_long("bodyTemplate")),
            _RESULT,
        ),
    ),
    "StoreValueNode": Form(
        "data",
        (
            _needed(_template("keyName")),
            _choice("valueType", "template", "json", "number", "path", "incr", "decr", "clear"),
            _template("value"),
            _path("valuePath"),
            _RESULT,
        ),
    ),
    "StringNode": Form(
        "logic", (_template("sourceData"), _text("method"), _texts("methodArgs"), _NEEDED_RESULT)
    ),
    "StructureEmailNode": Form(
        "output",
        (
            _needed(_texts("toAddresses")),
            _needed(_template("subjectTemplate")),
            _needed(_long("bodyTemplate")),
            _template("fromTemplate"),
            _RESULT,
        ),
    ),
    "SwitchNode": Form(
        "logic", (_needed(_template("switchTemplate")), _rows("cases", _template("caseTemplate")))
    ),
    "ThrottleNode": Form(
        "logic", (_needed(_number("ratePerMinute")), _template("throttleIdTemplate"), _path("timeSincePath"))
    ),
    "ThrowErrorNode": Form("debug", (_template("messageTemplate"),)),
    "TimeRangeNode": Form(
        "logic",
        (
            _path("sourcePath"),
            _template("timeZoneTemplate"),
            _template("startTimeTemplate"),
            _template("endTimeTemplate"),
            _choice("daysType", "array", "path"),
            Setting(
                "days",
                "flags",
                options=("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
            ),
            _path("daysPath"),
            _path("branchPath"),
        ),
    ),
    "TimeSeriesNode": Form(
        "data", (*_SERIES, _number("resolution"), _number("limitTemplate"), _template("orderTemplate"))
    ),
    "UpdateDeviceNode": Form("data", (_needed(_template("deviceIdTemplate")), *_DEVICE, *_SHOWN)),
    "UpdateEventNode": Form(
        "data",
        (
            _template("eventIdTemplate"),
            _template("targetEventIdTemplate"),
            _long("queryTemplate"),
            _flag("updateMultiple"),
            _METHOD,
            _template("commentTemplate"),
            *_EVENT,
            _flag("disableTagChangeTracking"),
            _RESULT,
        ),
    ),
    "UpdateExperienceGroupNode": Form(
        "experience",
        (
            _needed(_template("groupIdTemplate")),
            *_GROUP,
            _texts("membersToRemove"),
            _texts("membersReplacement"),
            _RESULT,
        ),
    ),
    "UpdateExperienceUserNode": Form(
        "experience",
        (_needed(_template("emailOrIdTemplate")), *_USER, _flag("invalidateExistingTokens"), _RESULT),
    ),
    "ValidatePayloadNode": Form(
        "logic",
        (
            _choice("schemaType", "json", "path"),
            _needed(_long("schema")),
            _path("toValidatePath"),
            _path("errorsPath"),
        ),
    ),
    "VerifyDeviceNode": Form(
        "experience",
        (_template("idTypeTemplate"), _template("idTemplate"), _needed(_template("deviceIdTemplate"))),
    ),
    "VerifyExperienceGroupNode": Form(
        "experience", (_template("emailOrIdTemplate"), _needed(_template("groupIdTemplate")))
    ),
    "WebhookReplyNode": Form(
        "output",
        (
            _choice("replyType", "custom", "redirect"),
            *_BODY,
            _path("replyIdPath"),
            _flag("isWebsocketMessage"),
            _template("encodingTemplate"),
        ),
    ),
    "WebsocketMessageNode": Form(
        "output",
        (
            _needed(_template("integrationId")),
            _needed(_long("messageTemplate")),
            _template("encodingTemplate"),
        ),
    ),
    "WorkflowTriggerNode": Form(
        "output",
        (
            _choice("behavior", "immediate", "schedule", "cancel"),
            _template("triggerWorkflowId"),
            _template("triggerVirtualButtonId"),
            _template("flowVersionTemplate"),
            *_PAYLOAD,
            _choice("scheduling", "relative", "absolute"),
            _number("secondsTemplate"),
            _template("dateTemplate"),
            _template("runIdTemplate"),
            _RESULT,
        ),
    ),
}
"""The forms, by type."""
