package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/toolgroups"
)

// Paths of the Authorization API 1.0.
const (
	evaluationPath    = "/access/v1/evaluation"
	evaluationsPath   = "/access/v1/evaluations"
	decisionPointPath = "/.well-known/authzen-configuration"
)

// maxEvaluations limits the questions of one request.
const maxEvaluations = 1000

// authzenRoutes are the Authorization API 1.0 (AuthZEN): a policy enforcement point asks what the
// gate would say. The answers come from answerQuestion, as those of checkAccess do.
func (a *api) authzenRoutes() []route {
	return []route{
		{
			method: "POST", path: evaluationPath, id: "evaluateAccess", summary: "Ask whether a role, an agent or a caller may call a tool",
			scopes: toolUsers, protocol: authzenProtocol, body: wire.Evaluation{}, answer: wire.Decision{}, serve: echoRequestID(a.countedEndpoint(a.evaluateAccess)),
		}, {
			method: "POST", path: evaluationsPath, id: "evaluateAccesses", summary: "Ask several such questions",
			scopes: toolUsers, protocol: authzenProtocol, body: wire.Evaluations{}, answer: answerOneOf{wire.Decisions{}, wire.Decision{}}, serve: echoRequestID(a.countedEndpoint(a.evaluateAccesses)),
		}, {
			method: "GET", path: decisionPointPath, id: "showDecisionPoint", summary: "Show where the Authorization API is",
			scopes: public, protocol: authzenProtocol, answer: wire.DecisionPoint{}, serve: jsonEndpoint(a.showDecisionPoint),
		},
	}
}

// showDecisionPoint answers with the addresses of the Authorization API.
func (a *api) showDecisionPoint(r *http.Request) (any, error) {
	base := auth.BaseURL(r)
	if base == "" {
		return nil, routeNotFound(nil, r)
	}
	return wire.DecisionPoint{Point: base, Evaluation: base + evaluationPath, Evaluations: base + evaluationsPath}, nil
}

// evaluateAccess answers one question.
func (a *api) evaluateAccess(r *http.Request) (any, error) {
	var q wire.Evaluation
	if err := decodeEvaluation(r, &q); err != nil {
		return nil, err
	}
	if err := checkEvaluation(q); err != nil {
		return nil, err
	}
	return a.decide(r, a.visibilityFor(r), q), nil
}

// evaluateAccesses answers several questions, or one if the request has no list.
func (a *api) evaluateAccesses(r *http.Request) (any, error) {
	var q wire.Evaluations
	if err := decodeEvaluation(r, &q); err != nil {
		return nil, err
	}
	whole := wire.Evaluation{Subject: q.Subject, Action: q.Action, Resource: q.Resource, Context: q.Context}
	semantic := wire.ExecuteAll
	if q.Options != nil {
		semantic = cmp.Or(q.Options.Semantic, semantic)
	}
	switch {
	case semantic != wire.ExecuteAll && semantic != wire.DenyOnFirstDeny && semantic != wire.PermitOnFirstPermit:
		return nil, errcode.New(errcode.InvalidArguments, "unknown evaluations_semantic %.100q", semantic).With("field", "options.evaluations_semantic")
	case len(q.Evaluations) > maxEvaluations:
		return nil, errcode.New(errcode.InvalidArguments, "the request has %d evaluations; at most %d are allowed", len(q.Evaluations), maxEvaluations).With("field", "evaluations")
	case len(q.Evaluations) == 0:
		if err := checkEvaluation(whole); err != nil {
			return nil, err
		}
		return a.decide(r, a.visibilityFor(r), whole), nil
	}
	out, v := wire.Decisions{}, a.visibilityFor(r)
	for _, one := range q.Evaluations {
		d, err := a.decideInTurn(r, v, withDefaults(one, whole))
		if err != nil {
			return nil, err
		}
		out.Evaluations = append(out.Evaluations, d)
		if d.Decision && semantic == wire.PermitOnFirstPermit || !d.Decision && semantic == wire.DenyOnFirstDeny {
			break
		}
	}
	return out, nil
}

// withDefaults returns a copy of q. Each field that q lacks has the value of defaults.
func withDefaults(q, defaults wire.Evaluation) wire.Evaluation {
	return wire.Evaluation{
		Subject: cmp.Or(q.Subject, defaults.Subject), Action: cmp.Or(q.Action, defaults.Action),
		Resource: cmp.Or(q.Resource, defaults.Resource), Context: cmp.Or(q.Context, defaults.Context),
	}
}

// checkEvaluation rejects a question that is not complete.
func checkEvaluation(q wire.Evaluation) error {
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"subject", q.Subject == nil || q.Subject.Type == "" || q.Subject.ID == ""},
		{"action", q.Action == nil || q.Action.Name == ""},
		{"resource", q.Resource == nil || q.Resource.Type == "" || q.Resource.ID == ""},
	} {
		if f.missing {
			return errcode.New(errcode.InvalidArguments, "field %q is missing or not complete", f.name).With("field", f.name)
		}
	}
	return nil
}

// decideInTurn is decide in the sender's turn: a request has many questions, and each takes a
// processor for a while. The error is the cause of the request's context.
func (a *api) decideInTurn(r *http.Request, v visibility, e wire.Evaluation) (wire.Decision, error) {
	release, err := a.limiter.AcquireList(r.Context(), auth.SenderOf(r))
	if err != nil {
		return wire.Decision{}, err
	}
	defer release()
	if err := context.Cause(r.Context()); err != nil {
		return wire.Decision{}, err
	}
	return a.decide(r, v, e), nil
}

// decide returns the gate's decision for a sender who sees v. A question that has an error is
// denied.
func (a *api) decide(r *http.Request, v visibility, e wire.Evaluation) wire.Decision {
	q, err := toQuestion(e)
	if err != nil {
		return deniedDecision(err)
	}
	answer, err := a.answerQuestion(r, v, q)
	if err != nil {
		return deniedDecision(err)
	}
	verdict, ok := answer.(wire.Verdict)
	if !ok {
		return deniedDecision(errcode.New(errcode.InvalidArguments, "the question has no yes or no"))
	}
	return wire.Decision{Decision: verdict.Allowed, Context: &wire.DecisionContext{Code: verdict.Code, Reason: verdict.Reason, Epoch: verdict.Epoch}}
}

func deniedDecision(err error) wire.Decision {
	return wire.Decision{Context: &wire.DecisionContext{Code: errcode.CodeOf(err), Reason: errcode.Message(err)}}
}

// toQuestion converts a question of the Authorization API to one of checkAccess.
func toQuestion(e wire.Evaluation) (wire.Question, error) {
	if err := checkEvaluation(e); err != nil {
		return wire.Question{}, err
	}
	q := wire.Question{Tool: e.Resource.ID}
	switch e.Subject.Type {
	case "role":
		q.Role = e.Subject.ID
	case "agent":
		q.Agent = e.Subject.ID
	case "user":
		q.Caller = e.Subject.ID
	default:
		return q, errcode.New(errcode.InvalidArguments, "unknown type of subject %.100q; use role, agent or user", e.Subject.Type)
	}
	switch {
	case e.Action.Name != "call":
		return q, errcode.New(errcode.InvalidArguments, "unknown action %.100q; use call", e.Action.Name)
	case e.Resource.Type != "tool":
		return q, errcode.New(errcode.InvalidArguments, "unknown type of resource %.100q; use tool", e.Resource.Type)
	}
	if e.Context != nil {
		q.State = e.Context.State
		if e.Context.Group != nil {
			q.Groups = new(toolgroups.SetOfNames(e.Context.Group...))
		}
	}
	return q, nil
}

// decodeEvaluation reads a body into v. Fields that are not known are accepted, as the
// Authorization API says.
func decodeEvaluation(r *http.Request, v any) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	if err := strictjson.CheckDecodable(data, shapeOf(reflect.TypeOf(v).Elem())); err != nil {
		return errcode.New(errcode.InvalidArguments, "the body is a malformed or ambiguous JSON object: %v", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return bodyError(err)
	}
	return nil
}

// echoRequestID returns an endpoint that copies the header X-Request-ID of the request to the
// answer. It omits an id that is longer than maxKeyBytes.
func echoRequestID(next endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		if id := r.Header.Get("X-Request-ID"); id != "" && len(id) <= maxKeyBytes {
			w.Header().Set("X-Request-ID", id)
		}
		return next(w, r)
	}
}
