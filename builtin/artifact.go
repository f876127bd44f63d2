package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// artifactTools returns put_artifact and get_artifact. put_artifact can read
// content from the caller's workspace in w.
func artifactTools(a ArtifactStore, w WorkspaceOpener, l CallLimits) ([]tool.Tool, error) {
	h := artifacts{a, files{w, a, l, newReadSlots()}, l}
	var s toolBuilder
	s.add(tool.New("put_artifact", putArtifactText, withErrorCode(h.put), toolOptions(tool.Idempotent, tool.FlagsOf(), putArtifactInput)))
	s.add(tool.New("get_artifact", getArtifactText, withErrorCode(h.get), withCatalog(artifactCatalog{}, toolOptions(tool.ReadOnly, tool.FlagsOf(tool.Untrusted, tool.Private), getArtifactInput))))
	return s.tools, s.err
}

// artifacts handles the calls of the artifact group.
type artifacts struct {
	store  ArtifactStore
	files  files
	limits CallLimits
}

const putArtifactText = `Store a text, a table or an image as an artifact that other agents and people can fetch. Returns its reference.`

const putArtifactInput = `{
	"type": "object",
	"properties": {
		"type": {
			"type": "string",
			"description": "What it is, such as report or image/png.",
			"minLength": 1,
			"maxLength": 200
		},
		"content": {
			"type": ["string", "number", "boolean", "object", "array", "null"],
			"description": "The content: a text, or any JSON."
		},
		"encoding": {
			"type": "string",
			"description": "base64, if content is base64.",
			"enum": ["base64"]
		},
		"path": {
			"type": "string",
			"description": "A file of the workspace, instead of content.",
			"minLength": 1,
			"maxLength": 4096
		},
		"meta": {
			"type": "object",
			"description": "Further facts, such as a title."
		}
	},
	"required": ["type"],
	"additionalProperties": false
}`

// putArtifact holds the arguments of put_artifact. Exactly one of Content and
// Path is set.
type putArtifact struct {
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content,omitempty"`
	Encoding string          `json:"encoding,omitempty"`
	Path     string          `json:"path,omitempty"`
	Meta     json.RawMessage `json:"meta,omitempty"`
}

// artifactRef is the result of put_artifact.
type artifactRef struct {
	Ref string `json:"artifactRef"`
}

// put handles put_artifact.
func (h artifacts) put(ctx context.Context, in putArtifact) (artifactRef, error) {
	if in.Path != "" { // the content of the file is in memory until it is stored
		release, err := h.files.reads.Acquire(ctx, fairKey(currentCall(ctx)))
		if err != nil {
			return artifactRef{}, err
		}
		defer release()
	}
	a, err := h.fromArgs(ctx, in)
	if err != nil {
		return artifactRef{}, err
	}
	ref, err := h.store.PutArtifact(ctx, currentCall(ctx), a)
	return artifactRef{ref}, err
}

// fromArgs returns the artifact that in describes.
func (h artifacts) fromArgs(ctx context.Context, in putArtifact) (a Artifact, err error) {
	a = Artifact{Type: in.Type, Meta: in.Meta}
	switch {
	case (in.Content == nil) == (in.Path == ""):
		return a, errcode.New(errcode.InvalidArguments, "put_artifact: set exactly one of content and path")
	case in.Path != "" && in.Encoding != "":
		return a, errcode.New(errcode.InvalidArguments, "put_artifact: encoding describes content; leave it out with path")
	case in.Path != "":
		a.Value, a.Data, err = h.fromFile(ctx, in.Path)
	case in.Encoding != "":
		a.Data, err = decodeBase64JSON(in.Content)
	default:
		a.Value = in.Content
	}
	return a, err
}

// decodeBase64JSON decodes a JSON string that contains base64.
func decodeBase64JSON(value json.RawMessage) ([]byte, error) {
	var content *string
	if err := json.Unmarshal(value, &content); err != nil || content == nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err, "content must be a base64 string because encoding is base64")
	}
	return decodeContent(*content, inBase64)
}

// fromFile reads a file of the caller's workspace. It returns text as a JSON
// string in the first result and anything else as bytes in the second.
func (h artifacts) fromFile(ctx context.Context, name string) (json.RawMessage, []byte, error) {
	if err := checkOtherTool(ctx, h.limits, "put_artifact with path", "read_file", map[string]string{"path": name}); err != nil {
		return nil, nil, err
	}
	data, err := inWorkspace(ctx, h.files, name, func(ws *workspace.Dir, name string) ([]byte, error) {
		return readAtMost(ws, name, h.limits.ArtifactLimit())
	})
	if err != nil || !textutil.IsText(data) {
		return nil, data, err
	}
	return quote(data), nil, nil
}

// readAtMost reads a whole file. The error is workspace.TooLarge for more than
// limit bytes.
func readAtMost(ws *workspace.Dir, name string, limit int64) ([]byte, error) {
	data, size, err := ws.ReadPart(name, 0, limit+1)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, workspace.TooLarge(max(size, int64(len(data))), limit)
	}
	return data, nil
}

const getArtifactText = `Fetch an artifact, or a part of it. If truncated is true, read on at nextOffset.`

const getArtifactInput = `{
	"type": "object",
	"properties": {
		"ref": {
			"type": "string",
			"description": "Its reference.",
			"minLength": 1,
			"maxLength": 200
		},
		"offset": {
			"type": "integer",
			"description": "Byte to start at.",
			"minimum": 0,
			"maximum": 9007199254740991
		},
		"length": {
			"type": "integer",
			"description": "How many bytes to get.",
			"minimum": 1,
			"maximum": 1000000
		},
		"list": {
			"type": "object",
			"x-hidden": true,
			"description": "Instead of ref: list the artifacts of an external caller, newest first.",
			"properties": {"after": {"type": "string", "description": "The field next of the page before.", "maxLength": 200}},
			"additionalProperties": false
		}
	},
	"x-required": ["ref"],
	"additionalProperties": false
}`

// getArtifact holds the arguments of get_artifact. If Offset or Length is set,
// a part of the content is requested. List stands alone.
type getArtifact struct {
	Ref    string         `json:"ref,omitempty"`
	Offset *int64         `json:"offset,omitempty"`
	Length *int64         `json:"length,omitempty"`
	List   *listArtifacts `json:"list,omitempty"`
}

// listArtifacts asks for a page of the caller's artifacts.
type listArtifacts struct {
	After string `json:"after,omitempty"` // Next of the page before; "" for the first page
}

// list handles get_artifact with list.
func (h artifacts) list(ctx context.Context, in getArtifact) (any, error) {
	c := currentCall(ctx)
	switch {
	case in.Ref != "" || in.Offset != nil || in.Length != nil:
		return nil, errcode.New(errcode.InvalidArguments, "get_artifact: set exactly one of ref and list").With("field", "list")
	case c.By.Kind != identity.Caller:
		return nil, errcode.New(errcode.InvalidArguments, "get_artifact: list is for external callers; copy a reference from put_artifact or a message").With("field", "list")
	}
	return h.store.ListArtifacts(ctx, c, in.List.After)
}

// storedArtifact is the result of get_artifact. contentRange is nil when
// Content is the whole content.
type storedArtifact struct {
	Ref       string          `json:"artifactRef"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Encoding  string          `json:"encoding,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	*contentRange
	Meta json.RawMessage `json:"meta,omitempty"`
}

// get handles get_artifact. The result is nil, JSON null, for an artifact that
// the caller's task does not have.
func (h artifacts) get(ctx context.Context, in getArtifact) (any, error) {
	if in.List == nil && in.Ref == "" {
		return nil, errcode.New(errcode.InvalidArguments, "get_artifact: ref is missing").With("field", "ref")
	}
	release, err := h.files.reads.Acquire(ctx, fairKey(currentCall(ctx)))
	if err != nil {
		return nil, err
	}
	defer release()
	if in.List != nil {
		return h.list(ctx, in)
	}
	a, err := h.store.GetArtifact(ctx, currentCall(ctx), in.Ref)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return tool.Result{Structured: json.RawMessage("null"), Absent: "this task has no artifact " + strconv.Quote(textutil.OneLine(in.Ref, maxShownName)) + "; copy a reference from put_artifact or a message"}, nil
	}
	out := &storedArtifact{Ref: in.Ref, Type: a.Type, Meta: a.Meta}
	if a.Value == nil {
		out.MediaType = a.MediaType()
	}
	limit := contentLimit(h.limits, currentCall(ctx).By, out)
	content, encoding := a.fileContent()
	if in.Offset == nil && in.Length == nil && len(content) <= maxWholeContent && out.setWhole(a, encoding, limit) {
		return out, nil
	}
	out.setPart(content, encoding, in, limit)
	return out, nil
}

// setWhole sets the whole content if it takes at most limit bytes of JSON; JSON stays as it was
// stored. Models are shown images, so those always fit.
func (s *storedArtifact) setWhole(a *Artifact, encoding string, limit int) bool {
	content := a.Value
	if encoding == inBase64 {
		content = quoteBase64(a.Data)
	}
	text, _ := json.Marshal(content) // as it is in the result: escaped for HTML
	if len(text) > limit && !strings.HasPrefix(s.MediaType, "image/") {
		return false
	}
	s.Content = content
	if encoding == inBase64 {
		s.Encoding = inBase64
	}
	return true
}

// setPart sets the requested part of the content, or as much of it as takes limit bytes of
// JSON.
func (s *storedArtifact) setPart(content []byte, encoding string, in getArtifact, limit int) {
	at, length := int64(0), int64(maxWholeContent)
	if in.Offset != nil {
		at = *in.Offset
	}
	if in.Length != nil {
		length = min(*in.Length, maxLength)
	}
	size := int64(len(content))
	from := min(at, size)
	data := content[from:min(from+length, size)]
	if encoding == inBase64 {
		data = fitBase64(data, limit)
		s.Encoding, s.Content, s.contentRange = inBase64, quoteBase64(data), new(newRange(at, len(data), size))
		return
	}
	text, asBytes, n := encodePart(data, from+int64(len(data)) < size, limit)
	s.Encoding, s.Content, s.contentRange = cmp.Or(asBytes, encoding), quote([]byte(text)), new(newRange(at, n, size))
}
