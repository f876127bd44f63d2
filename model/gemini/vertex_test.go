package gemini_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const vertexPath = "/v1/projects/p/locations/global/publishers/google"

// vertexSuite is suite for the same models on Vertex AI, at a path.
func vertexSuite(path string) providertest.Suite {
	s := suite
	s.New = func(c provider.Config) *provider.Model {
		c.BaseURL = cmp.Or(c.BaseURL, "http://h") + path
		return gemini.New(c)
	}
	s.CheckRequest = checkVertexRequest
	return s
}

func TestSuite_OnVertex(t *testing.T) { vertexSuite(vertexPath).Run(t) }

// checkVertexRequest returns why Vertex AI would reject a request, or "". Its calls and
// results have no ids.
func checkVertexRequest(body string) string {
	var doc struct {
		Contents []struct {
			Role  string
			Parts []struct {
				FunctionCall, FunctionResponse *struct{ ID, Name string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		return err.Error()
	}
	var open string // names of calls without a result yet
	for _, c := range doc.Contents {
		var calls, results []string
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil && p.FunctionCall.ID == "":
				calls = append(calls, p.FunctionCall.Name)
			case p.FunctionResponse != nil && p.FunctionResponse.ID == "":
				results = append(results, p.FunctionResponse.Name)
			case p.FunctionCall != nil || p.FunctionResponse != nil:
				return "a call or a result has an id"
			}
		}
		if got := strings.Join(results, " "); got != open {
			return "got results " + got + " for calls " + open
		}
		open = strings.Join(calls, " ")
	}
	if open != "" {
		return "calls without results: " + open
	}
	return ""
}

// On Vertex AI the key is a token, or an API key without a project.
func TestNew_OnVertex(t *testing.T) {
	const express = "/v1/publishers/google"
	for _, c := range []struct {
		path, method, authorization, apiKey string
		stream                              bool
	}{
		{vertexPath, ":streamGenerateContent?alt=sse", "Bearer " + key, "", true},
		{vertexPath, ":generateContent", "Bearer " + key, "", false},
		{express, ":generateContent", "", key, false},
	} {
		x := vertexSuite(c.path).Do(t, provider.Config{Stream: c.stream, Model: "gemini-2.5-pro"}, providertest.HelloRequest(), 200, ok)
		if x.Err != nil || x.Path != c.path+"/models/gemini-2.5-pro"+c.method {
			t.Errorf("sent to %s (%v)", x.Path, x.Err)
		}
		if x.Header.Get("Authorization") != c.authorization || x.Header.Get("x-goog-api-key") != c.apiKey {
			t.Errorf("%s: headers %v", c.path, x.Header)
		}
	}
}

// Vertex AI rejects the ids of calls and results.
func TestRequest_OnVertexHasNoIDs(t *testing.T) {
	r := providertest.HelloRequest()
	r.Items = append(r.Items,
		providertest.AnswerItem(model.Answer{Calls: []model.Call{{ID: "1", Provider: "theirs", Name: "f", Args: json.RawMessage(`{"n":1}`)}, {ID: "2", Name: "f", Args: json.RawMessage(`{"n":2}`)}}}),
		providertest.ResultItem("2", "f", `"b"`), providertest.ResultItem("1", "f", `"a"`))
	x := vertexSuite(vertexPath).Do(t, provider.Config{Model: "gemini-2.5-pro"}, r, 200, ok)
	if x.Err != nil {
		t.Fatal(x.Err)
	}
	providertest.EqualJSON(t, gjson.Get(x.Body, "contents.1.parts").Raw, `[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"f","args":{"n":2}}}]`)
	providertest.EqualJSON(t, gjson.Get(x.Body, "contents.2.parts").Raw, `[{"functionResponse":{"name":"f","response":{"output":"a"}}},{"functionResponse":{"name":"f","response":{"output":"b"}}}]`)
}
