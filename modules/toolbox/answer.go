package toolbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// maxComplaint is how much of the answer of a service that refuses is passed
// on.
const maxComplaint = 2 << 10

// exchange sends a request and reads the answer to its end.
func (r *request) exchange(by *client, q *http.Request) (tool.Result, error) {
	answer, err := by.Do(q)
	if err != nil {
		return tool.Result{}, err
	}
	defer answer.Body.Close()
	most := r.tool.bytes()
	if most <= 0 {
		most = defaultBody
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	switch {
	case err != nil:
		return tool.Result{}, err
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return tool.Result{}, r.complaint(answer.StatusCode, data)
	case len(data) > most:
		return tool.Result{}, errcode.New(errcode.ResultTooLarge, "the service's answer has more than %d bytes; ask for less", most)
	}
	return content(answer.Header.Get("Content-Type"), data), nil
}

// complaint passes on what a service that refuses says, unless it may hold a
// value that the caller is not to see.
func (r *request) complaint(status int, data []byte) error {
	if r.tool.hasSecrets() {
		return errcode.New(errcode.ToolExecutionFailed, "the service answered with status %d; its words may hold a value that is secure or of a claim and are not passed on", status).With("status", status)
	}
	said := strings.ToValidUTF8(string(data[:min(len(data), maxComplaint)]), "\uFFFD")
	return errcode.New(errcode.ToolExecutionFailed, "the service answered with status %d: %s", status, said).With("status", status)
}

// content gives a body as a result: JSON, else text, else base64.
func content(kind string, data []byte) tool.Result {
	if json.Valid(data) {
		return document(data)
	}
	if utf8.Valid(data) {
		return tool.Result{Text: string(data)}
	}
	doc, _ := json.Marshal(map[string]string{"contentType": kind, "base64": base64.StdEncoding.EncodeToString(data)}) // strings always marshal
	return tool.Result{Structured: doc}
}

// explain gives an error its code. What the library says names addresses: it
// is for the log.
func (r *request) explain(caller, timed context.Context, limit time.Duration, sent bool, err error) error {
	source := r.tool.config.Source
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	switch {
	case caller.Err() != nil:
		return context.Cause(caller)
	case timed.Err() != nil && !sent:
		return errcode.Wrap(errcode.ToolUnavailable, database.ErrNoConnection, "source %s: the request had no connection after %v; try again later", source, limit)
	case timed.Err() != nil:
		return errcode.New(errcode.ToolTimeout, "source %s did not answer within %v", source, limit)
	case errors.Is(err, hosts.ErrNotPublic):
		return errcode.New(errcode.AddressBlocked, "source %s leads to an address that is not public; its operator can list it as private", source)
	case errors.Is(err, errOtherHost):
		return errcode.New(errcode.ToolExecutionFailed, "source %s redirects to another host, which is not followed", source)
	case errors.Is(err, errRedirectLoop):
		return errcode.New(errcode.ToolExecutionFailed, "source %s redirects more than %d times", source, maxRedirects)
	case sent:
		return errcode.Wrap(errcode.ToolInterrupted, err, "source %s broke the connection before it had answered; whether the request was carried out is unknown", source)
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "source %s cannot be reached now; try again later", source)
}
