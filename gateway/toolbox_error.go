package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
)

// unsupportedMediaType is the code of a body that is not said to be JSON.
const unsupportedMediaType errcode.Code = "unsupported_media_type"

// toolboxRefusal is the body of a refusal as clients of Toolbox read it.
type toolboxRefusal struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

// asToolbox gives an endpoint whose refusals are in the shape of Toolbox.
func (a *api) asToolbox(serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		if err == nil {
			return nil
		}
		a.refused(errcode.Of(err))
		status := toolboxStatus(err)
		if status >= http.StatusInternalServerError && r.Context().Err() == nil {
			a.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		return writeJSON(w, status, toolboxRefusal{http.StatusText(status), errcode.Message(err)})
	}
}

func toolboxStatus(err error) int {
	if errcode.Of(err) == unsupportedMediaType {
		return http.StatusUnsupportedMediaType
	}
	return statusOf(err)
}
