"""What an editor shows of the types of nodes: their category, and the settings of their `config`, in a useful order.

It is for people who draw workflows, and decides nothing: what a node takes, its file decides. A test compares the two.
The rows of a list, such as the rules of a MutateNode, are not described; an editor shows the list as JSON. The module
is long because there are many types.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Category = Literal["data", "experience", "logic", "output", "debug"]
Kind = Literal["text", "template", "longTemplate", "expression", "path", "number", "flag", "choice", "json"]
"""`template` gives a text and `number` a number, `longTemplate` has several lines, `path` leads into the payload,
`text` is taken as it is, and `json` is a list or an object."""


class Setting(NamedTuple):
    """A setting of a type of node. Without `options`, any value of its kind; the first option is the default."""

    name: str
    kind: Kind
    is_needed: bool = False
    options: tuple[str, ...] = ()


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


def _flag(name: str) -> Setting:
    return Setting(name, "flag")


def _json(name: str) -> Setting:
    return Setting(name, "json")


def _choice(name: str, *options: str) -> Setting:
    return Setting(name, "choice", options=options)


def _needed(setting: Setting) -> Setting:
    return setting._replace(is_needed=True)


_RESULT: Final = _path("resultPath")
_NEEDED_RESULT: Final = _needed(_RESULT)
_METHOD: Final = _choice("dataMethod", "individualFields", "jsonTemplate", "payloadPath")
_ERRORS: Final = (_choice("errorBehavior", "throw", "payloadPath"), _path("errorPath"))
_PAGE: Final = (
    _flag("findMultiple"), _flag("findMetadata"), _text("sortField"), _choice("sortDirection", "asc", "desc"),
    _template("resultsPage"), _template("resultsPerPage"),
)  # fmt: skip
_SHOWN: Final = (_flag("tagsAsObject"), _flag("attributesAsObject"), _RESULT)
_DEVICE: Final = (
    _METHOD, _template("nameTemplate"), _template("descriptionTemplate"), _template("deviceClassTemplate"),
    _template("gatewayIdTemplate"), _template("parentIdTemplate"), _json("deviceTags"), _json("deviceAttributes"),
    _number("systemIntervalTemplate"), _template("keepDuplicatesTemplate"), _long("deviceJsonTemplate"),
    _path("devicePayloadPath"),
)  # fmt: skip
_EVENT: Final = (
    _template("levelTemplate"), _template("stateTemplate"), _template("subjectTemplate"),
    _template("deviceIdTemplate"), _json("eventTags"), _choice("dataSourceType", "payloadPath", "jsonTemplate"),
    _path("dataSourcePath"), _long("dataSourceJson"), _long("eventJsonTemplate"), _path("eventPayloadPath"),
)  # fmt: skip
_GROUP: Final = (
    _METHOD, _template("nameTemplate"), _template("descriptionTemplate"), _template("parentIdTemplate"),
    _json("groupTags"), _json("groupTagTemplates"), _json("membersToAdd"), _long("deviceQueryJsonTemplate"),
    _long("groupJsonTemplate"), _path("groupPayloadPath"),
)  # fmt: skip
_USER: Final = (
    _METHOD, _template("emailTemplate"), _template("passwordTemplate"), _template("firstNameTemplate"),
    _template("lastNameTemplate"), _json("groupIdTemplates"), _json("userTags"), _long("userJsonTemplate"),
    _path("userPayloadPath"),
)  # fmt: skip
_ROW: Final = (_METHOD, _json("rowFields"), _long("rowJsonTemplate"), _path("rowPayloadPath"))
_TABLE: Final = _needed(_template("dataTableIdTemplate"))
_SERIES: Final = (
    _choice("findMethod", "tagsIds", "tags", "deviceIds", "payloadPath", "query", "expUser", "expGroupId", "parentId"),
    _json("deviceIds"), _json("deviceTags"), _path("deviceIdsPath"), _long("queryTemplate"),
    _template("expUserTemplate"), _template("expGroupIdTemplate"), _template("parentIdTemplate"), _json("attribute"),
    _number("duration"), _template("end"), _template("aggregation"), _json("aggregationOptions"),
    _flag("perDeviceResults"), _RESULT, *_ERRORS,
)  # fmt: skip
_BODY: Final = (
    _choice("bodyTemplateType", "string", "path", "json", "payload", "none"), _long("bodyTemplate"),
    _template("responseCodeTemplate"), _json("headerInfo"),
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

FORMS: Final[dict[str, Form]] = {
    "AnnotationNode": Form("debug"),
    "ArrayNode": Form("logic", (_needed(_path("sourceArrayPath")), _json("rules"), _path("destArrayPath"))),
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
            _flag("deleteMultiple"),
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
            _json("attrInfos"),
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
            _json("sendToDeviceIds"),
            _json("sendToDeviceTags"),
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
            _json("cookieInfo"),
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
            _json("tags"),
            _long("queryTemplate"),
            *_PAGE,
            _flag("includeState"),
            _json("attributes"),
            _flag("includeConnectionStatus"),
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
            _json("tags"),
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
            _json("userTags"),
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
            _json("headerInfo"),
            _choice("bodyType", "string", "jsonTemplate", "multipart", "urlencoded", "url", "none"),
            _long("bodyTemplate"),
            _json("bodyFields"),
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
        ),
    ),
    "LosantApiNode": Form(
        "data",
        (
            _needed(_text("resource")),
            _needed(_text("action")),
            _json("params"),
            _template("apiTokenTemplate"),
            _template("applicationIdTemplate"),
            _path("responsePath"),
        ),
    ),
    "MathNode": Form("logic", (_json("statements"),)),
    "MqttMessageNode": Form(
        "output", (_needed(_template("topicTemplate")), _long("messageTemplate"), _text("integrationId"))
    ),
    "MutateNode": Form("logic", (_json("rules"),)),
    "ObjectNode": Form("logic", (_path("sourcePath"), _json("operations"), _path("destPath"))),
    "RandomNumberNode": Form("logic", (_number("min"), _number("max"), _NEEDED_RESULT)),
    "RawFunctionNode": Form("logic", (_long("script"), _path("scopePath"))),
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
        "logic", (_template("sourceData"), _text("method"), _json("methodArgs"), _NEEDED_RESULT)
    ),
    "StructureEmailNode": Form(
        "output",
        (
            _needed(_json("toAddresses")),
            _needed(_template("subjectTemplate")),
            _needed(_long("bodyTemplate")),
            _template("fromTemplate"),
            _RESULT,
        ),
    ),
    "SwitchNode": Form("logic", (_needed(_template("switchTemplate")), _json("cases"))),
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
            _json("days"),
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
            _json("membersToRemove"),
            _json("membersReplacement"),
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
