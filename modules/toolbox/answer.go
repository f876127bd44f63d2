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

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// Limits of the bytes of a service's error response that reach the caller.
const (
	maxErrorBody     = 2 << 10
	maxFullErrorBody = 64 << 10 // with returnFullError: true
)

// send sends a request and reads the whole response.
func (r *request) send(client *http.Client, q *http.Request) (tool.Result, error) {
	answer, err := client.Do(q)
	if err != nil {
		return tool.Result{}, err
	}
	defer answer.Body.Close()
	most := r.tool.maxBytes()
	if most <= 0 {
		most = defaultBody
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	switch {
	case err != nil:
		return tool.Result{}, err
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return tool.Result{}, r.statusError(answer.StatusCode, data, min(most, r.errorBytes()))
	case len(data) > most:
		return tool.Result{}, errcode.New(errcode.ResultTooLarge, "the service's response has more than %d bytes; request less data", most)
	}
	if len(r.tool.config.HTTP.ResultFields) > 0 {
		return r.fieldResult(data)
	}
	return r.bodyResult(answer.Header.Get("Content-Type"), data), nil
}

// fieldResult returns the field of a JSON answer that holds the result, without the secrets
// of the source. It returns a text as it is, and anything else as JSON. An answer with an
// error, or without such a field, is a failure.
func (r *request) fieldResult(data []byte) (tool.Result, error) {
	if !json.Valid(data) {
		return tool.Result{}, errcode.New(errcode.ToolExecutionFailed, "the service's answer is not JSON; check baseUrl of the source")
	}
	doc := gjson.ParseBytes(r.secrets.RedactJSON(data))
	if err := r.answeredError(doc); err != nil {
		return tool.Result{}, err
	}
	for _, name := range r.tool.config.HTTP.ResultFields {
		switch field := doc.Get(name); {
		case !field.Exists() || field.Type == gjson.Null:
		case field.Type == gjson.String:
			return tool.Result{Text: field.Str}, nil
		default:
			return jsonResult(json.RawMessage(field.Raw)), nil
		}
	}
	return tool.Result{}, errcode.New(errcode.ToolExecutionFailed, "the service's answer has no field %s", strings.Join(r.tool.config.HTTP.ResultFields, " or "))
}

// answeredError returns the error in an answer with status 2xx. The form of the error is {"error":
// {"type", "message"}}, {"error": "text"}, or "errors" without a result. answeredError returns nil
// if the answer has no error.
func (r *request) answeredError(doc gjson.Result) error {
	text := ""
	switch failure := doc.Get("error"); {
	case failure.Type == gjson.String:
		text = failure.Str
	case failure.IsObject():
		text = failure.Get("message").String()
	case len(doc.Get("errors").Array()) > 0 && doc.Get("data").Type == gjson.Null:
		text = doc.Get("errors.0").String()
	default:
		return nil
	}
	if r.tool.hasSecrets() {
		text = "its text is withheld because it may contain a secure or claim value"
	}
	return errcode.New(errcode.ToolExecutionFailed, "the service answered with an error: %s", textutil.Truncate(text, maxErrorBody))
}

// errorBytes returns how many bytes of an error response reach the caller: 0 if the source has
// returnFullError: false.
func (r *request) errorBytes() int {
	switch full := r.tool.module.config.Source.FullError; {
	case full == nil:
		return maxErrorBody
	case *full:
		return maxFullErrorBody
	}
	return 0
}

// statusError returns the error of a response whose status is not 2xx. It contains
// the first bytes of the body unless they may repeat a value that the caller must not see.
func (r *request) statusError(status int, data []byte, most int) error {
	if r.tool.hasSecrets() {
		return errcode.New(errcode.ToolExecutionFailed, "the service answered with status %d; its body is withheld because it may contain a secure or claim value", status).With("status", status)
	}
	if most == 0 {
		return errcode.New(errcode.ToolExecutionFailed, "the service answered with status %d %s", status, http.StatusText(status)).With("status", status)
	}
	data = r.secrets.RedactJSON(data)
	body := textutil.Truncate(strings.ToValidUTF8(string(data), "\uFFFD"), most)
	err := errcode.New(errcode.ToolExecutionFailed, "the service answered with status %d: %s", status, body).With("status", status)
	if len(data) > most {
		err = err.With("truncated", true)
	}
	return err
}

// bodyResult returns a body, without the secrets of the source, as a result: as JSON, else
// as text, else as base64.
func (r *request) bodyResult(kind string, data []byte) tool.Result {
	data = r.secrets.RedactJSON(data)
	if json.Valid(data) {
		return jsonResult(data)
	}
	if utf8.Valid(data) {
		return tool.Result{Text: string(data)}
	}
	doc, _ := json.Marshal(map[string]string{"contentType": r.secrets.RedactText(kind), "base64": base64.StdEncoding.EncodeToString(data)}) // strings always marshal
	return tool.Result{Structured: doc}
}

// whyBlocked returns why an address of the source was not dialed, and what the operator can do.
func (r *request) whyBlocked() string {
	const list = "is not public; the operator can list it in privateAddresses of kind: network"
	if s := r.tool.module.config.Source; s.PrivateNetworks != nil || s.BlockedRanges != nil {
		return "its allowPrivateNetworks and customBlockedIpRanges exclude, or that " + list
	}
	return list
}

// classify returns a transport error with its code. The library's text contains
// addresses, so it is wrapped for the log and not part of the message.
func (r *request) classify(caller, timed context.Context, limit time.Duration, sent bool, err error) error {
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
		return errcode.New(errcode.AddressBlocked, "source %s resolves to an address that %s", source, r.whyBlocked())
	case errors.Is(err, errOtherHost):
		return errcode.New(errcode.ToolExecutionFailed, "source %s redirects to another host; such redirects are not followed", source)
	case errors.Is(err, errRedirectLoop):
		return errcode.New(errcode.ToolExecutionFailed, "source %s redirects more than %d times", source, maxRedirects)
	case sent:
		return errcode.Wrap(errcode.ToolInterrupted, err, "source %s closed the connection before answering; whether the request was carried out is unknown", source)
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "source %s is unreachable; try again later", source)
}
