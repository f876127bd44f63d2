package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

// listArtifacts lists artifacts by age, of one task or of all.
func (a *api) listArtifacts(r *http.Request) (any, error) {
	var list []runtime.Artifact
	for artifact, err := range a.rt.Artifacts(r.Context(), identity.TaskID(r.URL.Query().Get("task"))) {
		if err != nil && r.Context().Err() != nil {
			return nil, err
		}
		if err != nil { // the others are still worth showing
			a.log.Error("artifact left out", "error", err)
			continue
		}
		list = append(list, artifact)
	}
	key := func(v runtime.Artifact) string { return byCreation(v.CreatedAt, v.ID) }
	slices.SortFunc(list, func(x, y runtime.Artifact) int { return strings.Compare(key(x), key(y)) })
	return paginate(r, list, key, same)
}

// sweep removes stored contents that nothing names, or with dryRun counts them.
func (a *api) sweep(r *http.Request) (any, error) {
	dryRun, err := flag(r, "dryRun")
	if err != nil {
		return nil, err
	}
	return a.rt.CollectGarbage(r.Context(), dryRun)
}

// showArtifact gives an artifact's record, or with content its bytes: a text
// as it is, anything else that is no bytes as JSON. What agents made is never
// served as a page that a browser would run.
func (a *api) showArtifact(w http.ResponseWriter, r *http.Request) error {
	whole, err := flag(r, "content")
	if err != nil {
		return err
	}
	artifact, content, err := a.rt.Artifact(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if !whole {
		return writeJSON(w, http.StatusOK, artifact)
	}
	kind, body := contentOf(artifact, content)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Content-Disposition", "attachment")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a peer that has gone is nobody's error
	return nil
}

// imageTypes are the types of bytes that are served as such: a browser can only
// show them. Of any other the guess is not passed on.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func contentOf(a runtime.Artifact, content []byte) (kind string, body []byte) {
	var text string
	switch {
	case a.Binary && slices.Contains(imageTypes, a.MediaType):
		return a.MediaType, content
	case a.Binary:
		return "application/octet-stream", content
	case json.Unmarshal(content, &text) == nil && string(content) != "null":
		return "text/plain; charset=utf-8", []byte(text)
	}
	return "application/json", content
}
