package protocol

import (
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// Topic is one queue of a tool service. TrustGraph has two spellings of it, which ParseTopic
// reads: "non-persistent://tg/request/joke" and "request:tg:joke".
type Topic struct {
	Class string // flow, request, response or notify
	Space string // the topic space: tg, unless a deployment has its own
	Name  string // of the service, such as joke
}

// maxTopic is the largest number of bytes of the space and the name of a topic together.
const maxTopic = 150

// classes are the classes of topics that TrustGraph has.
var classes = map[string]bool{"flow": true, "request": true, "response": true, "notify": true}

// ParseTopic returns the topic that a text names. A text without a class is of the class flow
// and the space tg, as TrustGraph reads it. A colon in the name becomes a dot. Errors:
// InvalidConfig.
func ParseTopic(text string) (Topic, error) {
	t, ok := splitTopic(text)
	switch {
	case len(t.Space)+len(t.Name) > maxTopic:
		return Topic{}, errcode.New(errcode.InvalidConfig, "the name of a queue has at most %d bytes", maxTopic)
	case !ok || !classes[t.Class] || !isSubject(t.Space) || !isSubject(t.Name):
		return Topic{}, errcode.New(errcode.InvalidConfig, "%.100q is not a queue; write for example non-persistent://tg/request/joke or request:tg:joke", text)
	}
	return t, nil
}

// splitTopic splits the text of a topic in either spelling.
func splitTopic(text string) (Topic, bool) {
	scheme, rest, isURL := strings.Cut(text, "://")
	if isURL {
		parts := strings.Split(rest, "/")
		persistent := scheme == "persistent"
		if len(parts) != 3 || !persistent && scheme != "non-persistent" {
			return Topic{}, false
		}
		return Topic{Class: parts[1], Space: parts[0], Name: dotted(parts[2])}, (parts[1] == "flow") == persistent
	}
	class, rest, colon := strings.Cut(text, ":")
	if !colon {
		return Topic{Class: "flow", Space: "tg", Name: text}, true
	}
	space, name, ok := strings.Cut(rest, ":")
	return Topic{Class: class, Space: space, Name: dotted(name)}, ok
}

// dotted replaces the colons of a name, which some brokers do not allow.
func dotted(name string) string { return strings.ReplaceAll(name, ":", ".") }

// isSubject reports whether a text is safe as part of the subject of every broker. Dots separate
// its parts. A part has ASCII letters, digits, '_' and '-'.
func isSubject(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if part == "" || strings.Trim(part, subjectBytes) != "" {
			return false
		}
	}
	return true
}

// subjectBytes are the bytes that a part of a subject may have.
const subjectBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// Subject returns the topic as NATS, RabbitMQ and Kafka name it: tg.request.joke.
func (t Topic) Subject() string { return t.Space + "." + t.Class + "." + t.Name }

// URL returns the topic as Pulsar names it: non-persistent://tg/request/joke.
func (t Topic) URL() string {
	scheme := "non-persistent"
	if t.Class == "flow" {
		scheme = "persistent"
	}
	return scheme + "://" + t.Space + "/" + t.Class + "/" + t.Name
}
