package gemini_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	text   = `{"candidates":[{"content":{"parts":[{"text":"So far"}]}}]}` + "\n"
	called = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}` + "\n"
)

func finish(reason string) string {
	return `{"candidates":[{"finishReason":"` + reason + `"}],"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":2,"candidatesTokenCount":1,"thoughtsTokenCount":2}}` + "\n"
}

func TestAnswer_FinishReasons(t *testing.T) {
	call := []model.Call{{Name: "f", Args: []byte(`{}`)}}
	wantAnswer := suite.AnswerCases(t, model.TokenUsage{Input: 7, Output: 3}, events)
	wantAnswer("end of turn", text+finish("STOP"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("end after calls", text+called+finish("STOP"), model.Answer{Text: "So far", Finish: model.FinishToolCalls, Calls: call})
	wantAnswer("unknown reason", text+finish("TEA_BREAK"), model.Answer{Text: "So far", Finish: model.FinishEnd})
	wantAnswer("empty answer", finish("STOP"), model.Answer{Finish: model.FinishEnd})
	wantAnswer("MAX_TOKENS", text+finish("MAX_TOKENS"), model.Answer{Text: "So far", Finish: model.FinishEnd, Stop: model.Length})
	wantAnswer("filter", finish("SAFETY"), model.Answer{Text: "The model refused to answer (SAFETY).", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("filter after a call", text+called+finish("PROHIBITED_CONTENT"),
		model.Answer{Text: "So far\n\nThe model refused to go on (PROHIBITED_CONTENT).", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("filter with a reason", `{"candidates":[{"finishReason":"RECITATION","finishMessage":"It is a song."}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}`,
		model.Answer{Text: "The model refused to answer (RECITATION). It is a song.", Finish: model.FinishEnd, Stop: model.ContentFilter})
	wantAnswer("prompt is blocked", `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","safetyRatings":[]},"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}`,
		model.Answer{Text: "The model refused to answer (PROHIBITED_CONTENT).", Finish: model.FinishEnd, Stop: model.ContentFilter})
}

// exhausted is the error of the API for a rate limit.
const exhausted = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[
	{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},
	{"@type":"type.googleapis.com/google.rpc.Help","links":[]},
	{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.5s"}]}}`

func TestAnswer_Errors(t *testing.T) {
	oneLine := strings.Join(strings.Fields(exhausted), " ")
	wantError := suite.ErrorCases(t)
	wantError("overloaded", 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, errcode.LLMCallFailed, true, "overloaded")
	wantError("overloaded in the stream", 200, events(text+`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), errcode.LLMCallFailed, true, "status 503")
	wantError("error without code in the stream", 200, events(text+`{"error":{"message":"Tea"}}`), errcode.LLMCallFailed, true, "status 500): Tea")
	wantError("rate limit", 429, exhausted, errcode.RateLimited, true, "exceeded your current quota")
	wantError("rate limit in the stream", 200, events(text+oneLine), errcode.RateLimited, true, "exceeded your current quota")
	wantError("wrong key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`, errcode.LLMCallFailed, false, "does not accept its key")
	wantError("bad request", 400, `{"error":{"code":400,"message":"Function call is missing a thought_signature","status":"INVALID_ARGUMENT"}}`, errcode.LLMCallFailed, false, "thought_signature")
	wantError("no such model", 404, `{"error":{"code":404,"message":"models/gemini-0 is not found","status":"NOT_FOUND"}}`, errcode.LLMCallFailed, false, "gemini-0")
	wantError("conversation too long", 400, `{"error":{"code":400,"message":"The input token count (1189990) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, errcode.ContextExceeded, false, "1189990")
	wantError("malformed call", 200, events(finish("MALFORMED_FUNCTION_CALL")), errcode.LLMCallFailed, true, "MALFORMED_FUNCTION_CALL")
	wantError("call of an unknown tool", 200, events(text+finish("UNEXPECTED_TOOL_CALL")), errcode.LLMCallFailed, true, "UNEXPECTED_TOOL_CALL")
	wantError("truncated stream", 200, events(text), errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("empty stream", 200, "", errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("empty event", 200, events(`{}`), errcode.LLMCallFailed, true, "stopped in the middle")
	wantError("event is not JSON", 200, "data: {\"candidates\":\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("event is not an object", 200, "data: []\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("event too deep", 200, "data: {\"candidates\":"+strings.Repeat("[", 1<<20)+"\n\n", errcode.LLMCallFailed, true, "not a JSON object")
	wantError("page of a proxy", 200, "<html>504</html>", errcode.LLMCallFailed, false, "is its baseURL right?")
	wantError("too many calls", 200, events(strings.Repeat(called, 300)), errcode.LLMCallFailed, false, "256 calls")
	wantError("too many parts", 200, events(strings.Repeat(`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]}}]}`+"\n", 5000)), errcode.LLMCallFailed, false, "4097 parts")
}

func TestAnswer_RetryAfter(t *testing.T) {
	oneLine := strings.Join(strings.Fields(exhausted), " ")
	for status, reply := range map[int]string{429: exhausted, 200: events(text + oneLine)} {
		x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), status, reply)
		failure := providertest.WantError(t, x.Err, errcode.RateLimited, true, "exceeded your current quota")
		if want := 38500 * time.Millisecond; failure.RetryAfter != want {
			t.Errorf("RetryAfter is %v, want %v", failure.RetryAfter, want)
		}
	}
}

func TestAnswer_NoCandidate(t *testing.T) {
	x := suite.Do(t, provider.Config{}, providertest.HelloRequest(), 200, `{"candidates":[]}`)
	providertest.WantError(t, x.Err, errcode.LLMCallFailed, true, "stopped in the middle")
}
