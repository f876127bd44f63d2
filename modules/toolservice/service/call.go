package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Call is one request.
type Call struct {
	User      string          // for whom the call is made; "operator" is the operator. True only with a Token
	Config    json.RawMessage // a JSON object: the values of the tool's declaration
	Arguments json.RawMessage // a JSON object from the model; do not trust it
	Token     *protocol.Token // who calls; nil if the service has no key

	message *nats.Msg
}

// Decode stores the values of the declaration, and then the arguments, in to, a pointer to a
// struct. Fields of the same name are the argument's, so a service that does not want that
// decodes Config and Arguments by itself.
func (c *Call) Decode(to any) error {
	if err := json.Unmarshal(c.Config, to); err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	if err := json.Unmarshal(c.Arguments, to); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	return nil
}

// SendPiece sends the next piece of the result before the handler returns the last one.
// Agents of TrustGraph read the first piece only.
func (c *Call) SendPiece(text string) error { return respond(c.message, protocol.Response{Text: text}) }

// receive takes one request. It is called by one goroutine.
func (s *Service) receive(m *nats.Msg) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.answer(m, protocol.Response{Error: &protocol.Error{Type: protocol.ErrorRateLimited, Message: "too many calls at a time"}})
		return
	}
	s.calls.Go(func() {
		defer func() { <-s.slots }()
		s.answer(m, s.handle(m))
	})
}

// handle checks a request and returns the last response to it.
func (s *Service) handle(m *nats.Msg) protocol.Response {
	c, err := s.readCall(m)
	if err != nil {
		s.options.Log.Warn("request rejected", "service", s.options.ID, "error", err)
		return protocol.Response{Error: &protocol.Error{Type: protocol.ErrorForbidden, Message: err.Error()}}
	}
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if c.Token != nil {
		ctx, cancel = context.WithDeadline(ctx, c.Token.Expires)
	}
	defer cancel()
	text, err := s.call(ctx, c)
	if err != nil {
		return protocol.Response{Error: &protocol.Error{Type: protocol.ErrorService, Message: err.Error()}}
	}
	return protocol.Response{Text: text}
}

// readCall reads a request and verifies its token.
func (s *Service) readCall(m *nats.Msg) (*Call, error) {
	r, err := protocol.DecodeRequest(m.Data)
	if err != nil {
		return nil, err
	}
	c := &Call{User: r.User, Config: json.RawMessage(r.Config), Arguments: json.RawMessage(r.Arguments), message: m}
	if s.options.Key == "" {
		return c, nil
	}
	t, err := s.signer.VerifyToken(m.Header.Get(protocol.HeaderToken), s.options.ID, r, time.Now())
	c.Token = &t
	return c, err
}

// call calls the handler. A panic is an error.
func (s *Service) call(ctx context.Context, c *Call) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.Log.Error("handler panicked", "service", s.options.ID, "panic", p)
			err = fmt.Errorf("the tool service %s failed", s.options.ID)
		}
	}()
	return s.handler(ctx, c)
}

// answer sends the last response to a request. One that is too large is an error, so that the
// caller does not wait for it.
func (s *Service) answer(m *nats.Msg, r protocol.Response) {
	r.EndOfStream = true
	err := respond(m, r)
	if errors.Is(err, nats.ErrMaxPayload) {
		message := fmt.Sprintf("the result has %d bytes, more than the broker accepts in one message", len(r.Text))
		err = respond(m, protocol.Response{Error: &protocol.Error{Type: protocol.ErrorService, Message: message}, EndOfStream: true})
	}
	if err != nil {
		s.options.Log.Warn("response not sent", "service", s.options.ID, "error", err)
	}
}

// respond sends a response to a request, with its id.
func respond(m *nats.Msg, r protocol.Response) error {
	out := &nats.Msg{Data: r.Encode()}
	if id := m.Header[protocol.HeaderID]; len(id) > 0 {
		out.Header = nats.Header{protocol.HeaderID: id}
	}
	if err := m.RespondMsg(out); err != nil {
		return fmt.Errorf("send a response: %w", err)
	}
	return nil
}
