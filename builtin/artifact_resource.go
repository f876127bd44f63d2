package builtin

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// artifactCatalog reads and lists artifacts as resources, with get_artifact. The reference of an
// artifact is its URI.
type artifactCatalog struct{}

// artifactPrefix begins the reference of an artifact.
const artifactPrefix = "artifact:"

// Source implements tool.Catalog.
func (artifactCatalog) Source() string { return "artifact" }

// Answers implements tool.Catalog.
func (artifactCatalog) Answers(k tool.CatalogKind) bool {
	return k == tool.ReadResource || k == tool.ListTemplates || k == tool.ListResources
}

// Arguments implements tool.Catalog.
func (artifactCatalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	switch r.Kind {
	case tool.ListTemplates:
		return nil, true
	case tool.ListResources:
		return marshalArgs(getArtifact{List: &listArtifacts{After: r.Cursor}}), true
	case tool.ReadResource:
		id, ok := strings.CutPrefix(r.URI, artifactPrefix)
		if !ok || id == "" || len(id) > maxArtifactID || slices.ContainsFunc([]byte(id), notInID) {
			return nil, false
		}
		return marshalArgs(getArtifact{Ref: r.URI, Offset: new(int64), Length: new(int64(maxLength))}), true
	}
	return nil, false
}

// maxArtifactID is the longest id of an artifact that is looked for.
const maxArtifactID = 100

// notInID reports whether c does not occur in the id of an artifact.
func notInID(c byte) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
}

// Answer implements tool.Catalog.
func (artifactCatalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	if r.Kind == tool.ListTemplates {
		return tool.CatalogAnswer{Templates: []tool.ResourceTemplate{{
			URITemplate: artifactPrefix + "{id}", Name: "artifact", Description: "An artifact, by the reference that put_artifact returns.",
		}}}, nil
	}
	if r.Kind == tool.ListResources {
		return listedArtifacts(result)
	}
	var a *struct {
		Content, Encoding string
		Size              int64
		Truncated         bool
	}
	if err := json.Unmarshal(result.Structured, &a); err != nil {
		return tool.CatalogAnswer{}, errcode.Wrap(errcode.Internal, err, "read the result of get_artifact")
	}
	if a == nil {
		return tool.CatalogAnswer{}, errcode.New(errcode.ArtifactNotFound, "there is no artifact %q", r.URI)
	}
	if a.Truncated {
		return tool.CatalogAnswer{}, errcode.New(errcode.InvalidArguments, "the artifact has %d bytes, more than fit into one answer; get_artifact reads it in parts", a.Size)
	}
	c, err := resourceContent(r.URI, a.Content, a.Encoding)
	if a.Encoding == inJSON {
		c.MIMEType = "application/json"
	}
	return tool.CatalogAnswer{Contents: []tool.Content{c}}, err
}

// listedArtifacts returns a page of get_artifact as resources. Whoever stored the artifact wrote
// the texts, so they are made plain.
func listedArtifacts(result tool.Result) (tool.CatalogAnswer, error) {
	var page ArtifactPage
	if err := json.Unmarshal(result.Structured, &page); err != nil {
		return tool.CatalogAnswer{}, errcode.Wrap(errcode.Internal, err, "read the list of get_artifact")
	}
	answer := tool.CatalogAnswer{Next: page.Next}
	for _, a := range page.Artifacts {
		answer.Resources = append(answer.Resources, tool.Resource{
			URI: a.Ref, Name: textutil.OneLine(textutil.RemoveInvisible(a.Type), maxShownName), MIMEType: a.MediaType, Size: int64(a.Size),
			Description: "stored at " + a.CreatedAt.UTC().Format(time.RFC3339),
		})
	}
	return answer, nil
}
