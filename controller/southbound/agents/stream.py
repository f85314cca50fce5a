"""What is done with an agent's stream, as a table: state and event to reaction."""

from enum import StrEnum


class StreamState(StrEnum):
    """How far a stream has come, once it is a WebSocket of somebody we trust."""

    NEW = "hello is awaited"
    SESSION = "in session"


class StreamEvent(StrEnum):
    """What happens on it."""

    HELLO = "says hello"
    REPORT = "says anything else"
    NONSENSE = "says what is not understood"
    SILENT = "is silent for long"
    LATE = "has not said hello in time"
    REVOKED = "has its certificate revoked"


class Reaction(StrEnum):
    """What is done then."""

    GREET = "let in, if its certificate and the topology say so"
    TAKE = "hand to the reports"
    CLOSE = "end, and say why"
    ABORT = "end at once"
    KEEP = "keep it: it says what the host acts on, which a controller that begins to lead must know"
    IGNORE = "nothing"


REACTIONS: dict[StreamState, dict[StreamEvent, Reaction]] = {
    StreamState.NEW: {
        StreamEvent.HELLO: Reaction.GREET,
        StreamEvent.REPORT: Reaction.CLOSE,
        StreamEvent.NONSENSE: Reaction.CLOSE,
        StreamEvent.SILENT: Reaction.ABORT,
        StreamEvent.LATE: Reaction.ABORT,
        StreamEvent.REVOKED: Reaction.IGNORE,  # it is looked at when it says hello
    },
    StreamState.SESSION: {
        StreamEvent.HELLO: Reaction.KEEP,
        StreamEvent.REPORT: Reaction.TAKE,
        StreamEvent.NONSENSE: Reaction.CLOSE,
        StreamEvent.SILENT: Reaction.ABORT,
        StreamEvent.LATE: Reaction.IGNORE,
        StreamEvent.REVOKED: Reaction.CLOSE,
    },
}
