package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// unsupportedMediaType is the error code of a body whose content type is not
// JSON.
const unsupportedMediaType errcode.Code = "unsupported_media_type"

// toolboxErrorBody is the body of an error response in Toolbox's form.
type toolboxErrorBody struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

// toolboxEndpoint returns an endpoint that reports errors in Toolbox's form.
func (a *api) toolboxEndpoint(serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		if err == nil {
			return nil
		}
		a.onRefused(errcode.Of(err))
		status := toolboxStatus(err)
		if status >= http.StatusInternalServerError && r.Context().Err() == nil {
			a.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		return wire.WriteJSON(w, status, toolboxErrorBody{http.StatusText(status), errcode.Message(err)})
	}
}

// toolboxStatus returns the HTTP status of an error.
func toolboxStatus(err error) int {
	if errcode.Of(err) == unsupportedMediaType {
		return http.StatusUnsupportedMediaType
	}
	return wire.StatusOf(err)
}
