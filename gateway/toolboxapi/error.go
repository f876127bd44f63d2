package toolboxapi

import (
	"log/slog"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
)

// unsupportedMediaType is the error code of a body whose content type is not
// JSON.
const unsupportedMediaType errcode.Code = "unsupported_media_type"

// ErrorBody is the body of an error response in Toolbox's form.
type ErrorBody struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

// respondError logs internal errors with their cause and answers in Toolbox's
// form.
func (a *API) respondError(w http.ResponseWriter, r *http.Request, err error) {
	a.config.OnRefused(errcode.CodeOf(err))
	status := statusOf(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		a.failures.LogRequest(slog.LevelError, "request failed", auth.SenderOf(r), r, err)
	}
	_ = wire.WriteJSON(w, status, ErrorBody{http.StatusText(status), errcode.Message(err)}) // strings can always be encoded
}

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	if errcode.CodeOf(err) == unsupportedMediaType {
		return http.StatusUnsupportedMediaType
	}
	return wire.StatusOf(err)
}
