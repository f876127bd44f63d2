package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/neterror"
	"github.com/rolecall/rolecall/org/hosts"
)

// maxAnswerHead is the most bytes of the header of an answer. The body is not read.
const maxAnswerHead = 64 << 10

// newClient returns the HTTP client of a receiver. It follows no redirect and uses no proxy. It
// dials only public addresses and addresses that the notification allows.
func newClient(n config.Notification, timeout time.Duration) *http.Client {
	dialer := net.Dialer{Timeout: timeout, Control: hosts.NewDialGuard(n.PrivateAddresses).Control}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxAnswerHead, TLSHandshakeTimeout: timeout, DisableCompression: true,
		},
	}
}

// answer is what a receiver has answered. The zero answer means no answer.
type answer struct {
	status     int
	retryAfter time.Duration // that it asks to wait
}

func (a answer) isSuccess() bool { return a.status >= 200 && a.status < 300 }

// refusesForGood reports whether the same message would be refused again.
func (a answer) refusesForGood() bool {
	switch a.status {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// post sends a message once. It returns an error unless the message is accepted. The error has no
// path of an address.
func (r *receiver) post(ctx context.Context, id string, body []byte) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, string(r.URL), bytes.NewReader(body))
	if err != nil {
		return answer{}, neterror.Explain(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "rolecall")
	r.sign(q.Header, id, body)
	resp, err := r.client.Do(q)
	if err != nil {
		return answer{}, neterror.Explain(err)
	}
	resp.Body.Close() // what it says is not used
	got := answer{status: resp.StatusCode}
	if !got.isSuccess() {
		err = fmt.Errorf("%s answers with status %d", q.URL.Host, got.status)
	}
	if wait, ok := backoff.ParseRetryAfter(resp.Header.Get("Retry-After")); ok {
		got.retryAfter = min(wait, maxRetryAfter)
	}
	return got, err
}

// sign sets the headers of Standard Webhooks. A receiver without a secret gets none.
func (r *receiver) sign(header http.Header, id string, body []byte) {
	key, ok := config.SigningKey(r.Secret)
	if !ok {
		return
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", at)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
