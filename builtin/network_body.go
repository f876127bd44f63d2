package builtin

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
)

// The maximum sizes in bytes of a body that is returned inline.
const (
	maxInline       = 256 << 10 // of text, to an agent; more would fill its conversation
	maxCallerInline = maxResult // of a body and of its JSON, to an external caller
)

// bodyLimit returns the maximum size in bytes of the body that the caller may receive. Agents store
// large bodies as artifacts.
func bodyLimit(ctx context.Context, p NetworkPolicy) int64 {
	if currentCall(ctx).By.Kind == identity.Agent {
		return p.MaxBody
	}
	return min(p.MaxBody, maxCallerInline)
}

// readBody reads and decompresses a response body of at most limit bytes. A
// longer body is an error and not truncated, since a model could take the part
// for the whole document.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.Body == http.NoBody {
		return nil, nil
	}
	if resp.ContentLength > limit {
		return nil, bodyTooLargeError(limit)
	}
	body := http.MaxBytesReader(nil, resp.Body, limit)
	if encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding == "gzip" || encoding == "x-gzip" {
		plain, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) { // empty body
			return nil, nil
		}
		if err != nil {
			return nil, bodyError(err, limit)
		}
		body = http.MaxBytesReader(nil, plain, limit) // also limits the decompressed size
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	}
	data, err := io.ReadAll(body)
	return data, bodyError(err, limit)
}

// bodyError replaces the error of a MaxBytesReader.
func bodyError(err error, limit int64) error {
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return bodyTooLargeError(limit)
	}
	return err
}

// bodyTooLargeError returns the error for a response body over the limit.
func bodyTooLargeError(limit int64) error {
	return errcode.New(errcode.ResultTooLarge, "http_request: the body of the answer is over the limit of %d bytes; ask for less: a narrower query, or a part with the header range", limit).
		With("limit", limit)
}

// joinHeaders returns headers with names in lower case and one value per name.
func joinHeaders(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return out
}

// storedBody replaces a body that was stored as an artifact.
type storedBody struct {
	Ref       string `json:"artifactRef"`
	Size      int    `json:"size"`
	MediaType string `json:"mediaType"`
}

// content returns a body in a form for models: a JSON value, text, or a storedBody.
// A caller that is not an agent has no task to store it in and gets all of it
// inline. Few bodies are converted at once: that takes several times their size.
func (c *httpClient) content(ctx context.Context, header http.Header, data []byte, h httpHop) (body json.RawMessage, coding string, err error) {
	release, err := c.conversions.Acquire(ctx, fairKey(currentCall(ctx)))
	if err != nil {
		return nil, "", err
	}
	defer release()
	body, coding, err = c.convert(ctx, header, data, h)
	if err == nil && len(body) > maxCallerInline {
		err = bodyTooLargeError(maxCallerInline)
	}
	return body, coding, err
}

// convert implements content.
func (c *httpClient) convert(ctx context.Context, header http.Header, data []byte, h httpHop) (body json.RawMessage, coding string, err error) {
	mediaType, charset := mediaTypeOf(header, data)
	text, isText := textOf(data, mediaType, charset)
	agent := currentCall(ctx).By.Kind == identity.Agent
	switch {
	case agent && !(isText && len(text) <= maxInline):
		body, err = c.store(ctx, mediaType, data, h)
	case !isText:
		coding = inBase64
		body, err = json.Marshal(base64.StdEncoding.EncodeToString(data))
	case isJSON(mediaType) && isSafeJSON(text):
		body = json.RawMessage(text)
	default:
		body, err = json.Marshal(text)
	}
	return body, coding, err
}

// store stores a body as an artifact of the caller's task and returns its
// storedBody.
func (c *httpClient) store(ctx context.Context, mediaType string, data []byte, h httpHop) (json.RawMessage, error) {
	meta, err := json.Marshal(map[string]string{"url": h.url.String()})
	if err != nil {
		return nil, err
	}
	ref, err := c.artifacts.PutArtifact(ctx, currentCall(ctx), Artifact{Type: mediaType, Data: data, Meta: meta})
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedBody{ref, len(data), mediaType})
}

// mediaTypeOf returns the declared media type and charset of a response. Without a
// declaration the type is detected from the first bytes.
func mediaTypeOf(header http.Header, data []byte) (mediaType, charset string) {
	declared := header.Get("Content-Type")
	if declared == "" {
		declared = http.DetectContentType(data)
	}
	mediaType, params, err := mime.ParseMediaType(declared)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || !strings.Contains(mediaType, "/") || len(mediaType) > 100 {
		return "application/octet-stream", ""
	}
	return mediaType, strings.ToLower(params["charset"])
}

// isJSON reports whether a media type is JSON.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// isSafeJSON reports whether text is one JSON value that the gate accepts as part
// of a result.
func isSafeJSON(text string) bool {
	return strictjson.CheckKeys([]byte(text), nil) == nil && strictjson.CheckKeys([]byte("["+text+"]"), nil) == nil
}

// textOf returns data as text in UTF-8. It reports false if data is not text.
func textOf(data []byte, mediaType, charset string) (string, bool) {
	if coding := charsets[charset]; coding != nil && isTextual(mediaType) {
		decoded, err := coding.NewDecoder().Bytes(data)
		if err != nil || bytes.ContainsRune(decoded, utf8.RuneError) {
			return "", false
		}
		data = decoded
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return string(data), textutil.IsText(data)
}

// charsets are the supported charsets other than UTF-8.
var charsets = map[string]encoding.Encoding{
	"iso-8859-1":   charmap.Windows1252, // as browsers read it
	"latin1":       charmap.Windows1252,
	"windows-1252": charmap.Windows1252,
	"utf-16":       unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf-16le":     unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"utf-16be":     unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
}

// isTextual reports whether a charset applies to a media type.
func isTextual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || isJSON(mediaType) || strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "javascript")
}
