package toolbox

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/net/http/httpguts"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/tool"
)

// request is the action of a tool of type http.
type request struct {
	tool    *declaredTool
	base    *base
	headers http.Header
	secrets *redact.Redactor // of the headers and the query, removed from responses
	path    *parameter.Template
	body    *parameter.Template // nil without a body
}

func newRequest(t *declaredTool) (action, error) {
	c := t.config.HTTP
	if c == nil {
		return nil, errcode.New(errcode.InvalidConfig, "request template is missing")
	}
	if t.module.config.Source.ReadOnly && !c.OnlyReads && !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, c.Method) {
		return nil, errcode.New(errcode.InvalidConfig, "method %s may change data, but the source is readOnly", c.Method)
	}
	b, err := newBase(t.module.config.Source)
	if err != nil {
		return nil, err
	}
	r := &request{tool: t, base: b, headers: b.headers.Clone()}
	if err := addHeaders(r.headers, c.Headers); err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "%v", err)
	}
	r.secrets = b.redactor(r.headers)
	for _, name := range c.HeaderParams {
		if err := checkHeader(name); err != nil || http.CanonicalHeaderKey(name) == "Content-Type" {
			return nil, errcode.New(errcode.InvalidConfig, "headerParams: a call cannot set the header %s", name)
		}
	}
	if r.path, err = t.config.Parameters.ParseTemplate(parameter.FormatPath, c.Path, c.PathParams...); err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "path: %v", err)
	}
	if c.Body == "" {
		return r, nil
	}
	if r.body, err = t.config.Parameters.ParseTemplate(r.bodyFormat(c.Body), c.Body, c.BodyParams...); err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "requestBody: %v", err)
	}
	return r, nil
}

// looksLikeForm matches the beginning of a form.
var looksLikeForm = textutil.LazyPattern(`^[A-Za-z0-9_.%\[\]-]+=`)

// bodyFormat returns the format of a body, as the Content-Type header says. If there is no such
// header and the body looks like JSON or a form, bodyFormat sets the header.
func (r *request) bodyFormat(body string) parameter.Format {
	if r.headers.Get("Content-Type") == "" && strings.IndexAny(strings.TrimSpace(body), "{[") == 0 {
		r.headers.Set("Content-Type", "application/json")
	}
	if r.headers.Get("Content-Type") == "" && looksLikeForm().MatchString(strings.TrimSpace(body)) {
		r.headers.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	kind := strings.ToLower(r.headers.Get("Content-Type"))
	switch {
	case strings.Contains(kind, "json"):
		return parameter.FormatJSON
	case strings.Contains(kind, "x-www-form-urlencoded"):
		return parameter.FormatForm
	case strings.Contains(kind, "xml"), strings.Contains(kind, "html"):
		return parameter.FormatXML
	case strings.HasPrefix(kind, "text/plain"):
		return parameter.FormatPlain
	}
	return parameter.FormatOther
}

func (r *request) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	limit := r.tool.timeout()
	if limit <= 0 {
		limit = defaultTimeout
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := false // whether the request got a connection
	traced := httptrace.WithClientTrace(timed, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	q, err := r.build(traced, v)
	if err != nil {
		return tool.Result{}, err
	}
	if err := p.checkReady(); err != nil {
		return tool.Result{}, err
	}
	result, err := r.sendInTurn(p, q)
	if err != nil {
		err = r.classify(ctx, timed, limit, sent, err)
	}
	p.noteResult(err)
	return result, err
}

// sendInTurn waits for the caller's turn and sends a request.
func (r *request) sendInTurn(p callerPool, q *http.Request) (tool.Result, error) {
	release, err := p.slots.Acquire(q.Context(), p.caller)
	if err != nil {
		return tool.Result{}, err
	}
	defer release()
	return r.send(p.client, q)
}

// build returns the request of a call.
func (r *request) build(ctx context.Context, v parameter.Values) (*http.Request, error) {
	at, err := r.targetURL(v)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if r.body != nil {
		text, err := r.body.RenderText(v)
		if err != nil {
			return nil, err
		}
		body = strings.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, r.tool.config.HTTP.Method, at.String(), body)
	if err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "build the request: invalid method or URL")
	}
	q.Header = r.headers.Clone()
	return q, r.setHeaderParams(q.Header, v)
}

// setHeaderParams sets the headers that take their value from a parameter.
func (r *request) setHeaderParams(to http.Header, v parameter.Values) error {
	for _, name := range r.tool.config.HTTP.HeaderParams {
		for _, value := range paramTexts(v, name) {
			if !httpguts.ValidHeaderFieldValue(value) {
				return errcode.New(errcode.InvalidArguments, "parameter %q contains characters that are not allowed in a header", name).With("parameter", name)
			}
			to.Set(name, value)
		}
	}
	return nil
}

// targetURL returns the URL of the request, which is below the base of the source.
func (r *request) targetURL(v parameter.Values) (*url.URL, error) {
	text, err := r.path.RenderText(v)
	if err != nil {
		return nil, err
	}
	below, err := url.Parse("/" + strings.TrimLeft(text, "/"))
	if err != nil || below.IsAbs() || below.Host != "" || below.Fragment != "" {
		return nil, errcode.New(errcode.InvalidArguments, "path of tool %s is not a path below the source's", r.tool.config.Name)
	}
	if hasDotSegment(below.EscapedPath()) {
		return nil, errcode.New(errcode.InvalidArguments, "path of tool %s has a segment . or .., which escapes the base path", r.tool.config.Name)
	}
	at := *r.base.url
	at.RawPath = joinPath(at.EscapedPath(), below.EscapedPath())
	if at.Path, err = url.PathUnescape(at.RawPath); err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "path of tool %s is invalid", r.tool.config.Name)
	}
	query := maps.Clone(r.base.query)
	for name, values := range below.Query() {
		query[name] = slices.Concat(query[name], values)
	}
	for _, name := range r.tool.config.HTTP.QueryParams {
		query[name] = slices.Concat(query[name], paramTexts(v, name))
	}
	at.RawQuery = query.Encode()
	return &at, nil
}

// hasDotSegment reports whether a path has a segment . or .., also after a server has
// unescaped it several times.
func hasDotSegment(escaped string) bool {
	for range 3 {
		for part := range strings.FieldsFuncSeq(escaped, func(c rune) bool { return c == '/' || c == '\\' }) {
			if path.Clean(part) == "." || part == ".." {
				return true
			}
		}
		again, err := url.PathUnescape(escaped)
		if err != nil || again == escaped {
			return false
		}
		escaped = again
	}
	return false
}

// joinPath appends a path to the path of a source.
func joinPath(above, below string) string {
	if below == "/" {
		return above
	}
	return strings.TrimRight(above, "/") + below
}

// paramTexts returns the value of a parameter as strings: none if it is missing, one
// for each element of an array.
func paramTexts(v parameter.Values, name string) (texts []string) {
	value := gjson.GetBytes(v.JSON(name), gjson.Escape(name))
	switch {
	case !value.Exists():
	case value.IsArray():
		for _, element := range value.Array() {
			texts = append(texts, element.String())
		}
	default:
		texts = append(texts, value.String())
	}
	return texts
}
