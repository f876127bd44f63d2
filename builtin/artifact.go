package builtin

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// artifactTools makes put_artifact and get_artifact over a.
func artifactTools(a Artifacts) ([]tool.Tool, error) {
	h := artifacts{a}
	var s set
	s.add(tool.New("put_artifact", putArtifactText, guarded(h.put), options(tool.Idempotent, putArtifactInput)))
	s.add(tool.New("get_artifact", getArtifactText, guarded(h.get), options(tool.ReadOnly, getArtifactInput)))
	return s.tools, s.err
}

// artifacts handles the calls of the artifact group.
type artifacts struct{ store Artifacts }

const putArtifactText = `Store a piece of work (a report, a table, an image) so that other agents and people can fetch it by reference. ` +
	`Use it for anything longer than a message, then send the reference instead of the content. ` +
	`content may be any JSON value; for binary data set encoding to "base64" and give a base64 string. At most 8 MiB. ` +
	`Every call stores a new artifact; artifacts never change. Answers {"artifactRef":"artifact:<id>"}. ` +
	`Example: {"type":"report","content":"# Findings\n…","meta":{"title":"Findings"}}`

const putArtifactInput = `{
	"type": "object",
	"properties": {
		"type": {
			"type": "string",
			"description": "What kind of artifact this is: a word of your own or a media type, such as report, table, image/png.",
			"minLength": 1,
			"maxLength": 200
		},
		"content": {
			"description": "The content: any JSON value, or a base64 string when encoding is base64."
		},
		"encoding": {
			"type": "string",
			"description": "Set to base64 when content is binary data as a base64 string; leave out otherwise.",
			"enum": ["base64"]
		},
		"meta": {
			"type": "object",
			"description": "Facts about the content, such as a title or a source. Free form."
		}
	},
	"required": ["type", "content"],
	"additionalProperties": false
}`

type putArtifact struct {
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	Encoding string          `json:"encoding,omitempty"`
	Meta     json.RawMessage `json:"meta,omitempty"`
}

type artifactRef struct {
	Ref string `json:"artifactRef"`
}

func (h artifacts) put(ctx context.Context, in putArtifact) (artifactRef, error) {
	a, err := in.artifact()
	if err != nil {
		return artifactRef{}, err
	}
	ref, err := h.store.PutArtifact(ctx, caller(ctx), a)
	return artifactRef{ref}, err
}

// artifact gives what in asks to store, its size checked.
func (in putArtifact) artifact() (Artifact, error) {
	a := Artifact{Type: in.Type, Meta: in.Meta}
	if in.Encoding != inBase64 {
		a.Value = in.Content
		return a, checkSize(len(a.Value) + len(a.Meta))
	}
	var content string
	if err := json.Unmarshal(in.Content, &content); err != nil {
		return a, errcode.Wrap(errcode.InvalidArguments, err, "content must be a base64 string, as encoding says")
	}
	var err error
	if a.Data, err = decode(content, in.Encoding); err != nil {
		return a, err
	}
	return a, checkSize(len(a.Data) + len(a.Meta))
}

const getArtifactText = `Fetch an artifact of your task by its reference. ` +
	`Use it when a message or a task brief names one. Answers {artifactRef, type, content, meta}; ` +
	`binary content is a base64 string and comes with "encoding":"base64". Answers null when your task has no such artifact. ` +
	`Example: {"ref":"artifact:3f0c1c0e-6a52-5b0e-9f0a-2d1f6f0f7c11"}`

const getArtifactInput = `{
	"type": "object",
	"properties": {
		"ref": {
			"type": "string",
			"description": "The reference as put_artifact gave it, with its artifact: prefix.",
			"minLength": 1,
			"maxLength": 200
		}
	},
	"required": ["ref"],
	"additionalProperties": false
}`

type getArtifact struct {
	Ref string `json:"ref"`
}

type storedArtifact struct {
	Ref      string          `json:"artifactRef"`
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	Encoding string          `json:"encoding,omitempty"`
	Meta     json.RawMessage `json:"meta,omitempty"`
}

// get answers nil, JSON null, for an artifact the caller's task does not have.
func (h artifacts) get(ctx context.Context, in getArtifact) (*storedArtifact, error) {
	a, err := h.store.GetArtifact(ctx, caller(ctx), in.Ref)
	if a == nil || err != nil {
		return nil, err
	}
	out := &storedArtifact{Ref: in.Ref, Type: a.Type, Content: a.Value, Meta: a.Meta}
	if a.Value == nil {
		out.Encoding = inBase64
		out.Content, err = json.Marshal(base64.StdEncoding.EncodeToString(a.Data))
	}
	return out, err
}
