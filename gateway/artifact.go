package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/runtime"
)

// listArtifacts lists the artifacts of one task or of all, by creation time.
func (a *api) listArtifacts(r *http.Request) (any, error) {
	var list []runtime.Artifact
	for artifact, err := range a.rt.ArtifactStore().ListArtifacts(r.Context(), identity.TaskID(r.URL.Query().Get("task"))) {
		if err != nil && r.Context().Err() != nil {
			return nil, err
		}
		if err != nil { // list the others
			a.log.Error("artifact skipped", "error", err)
			continue
		}
		list = append(list, artifact)
	}
	key := func(v runtime.Artifact) string { return creationKey(v.CreatedAt, v.ID) }
	slices.SortFunc(list, func(x, y runtime.Artifact) int { return strings.Compare(key(x), key(y)) })
	return paginate(r, list, key, func(v runtime.Artifact) wire.Artifact { return wire.Artifact(v) })
}

// collectGarbage deletes stored contents that no artifact references, or with dryRun
// only counts them.
func (a *api) collectGarbage(r *http.Request) (any, error) {
	dryRun, err := boolParam(r, "dryRun")
	if err != nil {
		return nil, err
	}
	result, err := a.rt.ArtifactStore().CollectGarbage(r.Context(), dryRun)
	return wire.SweepResult(result), err
}

// showArtifact answers with an artifact's record, or with its content if the
// query has content=1. It answers text as text, bytes as bytes, and other
// values as JSON. The headers make sure that browsers never run what agents
// have created.
func (a *api) showArtifact(w http.ResponseWriter, r *http.Request) error {
	wantContent, err := boolParam(r, "content")
	if err != nil {
		return err
	}
	artifact, content, err := a.rt.ArtifactStore().ReadArtifact(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if !wantContent {
		return wire.WriteJSON(w, http.StatusOK, wire.Artifact(artifact))
	}
	kind, body := artifactContent(artifact, content)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Content-Disposition", "attachment")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // an error means that the client has disconnected
	return nil
}

// imageTypes are the media types of binary content that are passed on, because
// browsers only display them. Other binary content is served as
// application/octet-stream, because its detected type could be one that
// browsers run.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// artifactContent returns the Content-Type and body for the content of an
// artifact.
func artifactContent(a runtime.Artifact, content []byte) (kind string, body []byte) {
	var text string
	switch {
	case a.Binary && slices.Contains(imageTypes, a.MediaType):
		return a.MediaType, content
	case a.Binary:
		return "application/octet-stream", content
	case json.Unmarshal(content, &text) == nil && string(content) != "null":
		return "text/plain; charset=utf-8", []byte(text)
	}
	return "application/json", textutil.UnescapeHTML(content)
}
