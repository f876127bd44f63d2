package gateway

import (
	"io"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// countedBody is the body of a request whose sender is known. What readBody reads of it counts to
// the bodies in progress until the request ends.
type countedBody struct {
	io.ReadCloser
	limiter *mcpserver.ConcurrencyLimiter
	limit   int // the most that readBody reads
	release func()
}

// withCountedBody returns an endpoint that serve answers, and that readBody may be called in.
func (a *api) withCountedBody(serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		body := &countedBody{r.Body, a.limiter, maxBodyBytes, func() {}}
		defer func() { body.release() }()
		r.Body = body
		return serve(w, r)
	}
}

// limitBody changes the limit of the body of a request, before readBody.
func limitBody(r *http.Request, limit int) { r.Body.(*countedBody).limit = limit }

// readBody reads the body of a request, once.
//
// Errors: RateLimited if too many large bodies are in progress; BodyTooLarge; InvalidArguments for
// a body that could not be read.
func readBody(r *http.Request) (data []byte, err error) {
	body := r.Body.(*countedBody)
	limited := http.MaxBytesReader(nil, body, int64(body.limit))
	data, body.release, err = body.limiter.ReadBody(limited, auth.SenderOf(r), r.ContentLength, body.limit)
	if errcode.CodeOf(err) != errcode.RateLimited {
		err = bodyReadError(r, err, body.limit)
	}
	return data, err
}
