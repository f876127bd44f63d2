package provider_test

import (
	"context"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/provider/endpoint"
	"github.com/rolecall/rolecall/model/providertest"
)

// parrot decodes the answers of an imaginary provider.
type parrot struct {
	response *provider.ResponseReader
	text     string
}

func (p *parrot) DecodeDocument(doc gjson.Result) error {
	p.text = doc.Get("say").String()
	return nil
}

func (p *parrot) DecodeEvent(doc gjson.Result) error { return p.DecodeDocument(doc) }

func (p *parrot) FinalAnswer() (*model.Answer, error) {
	return &model.Answer{Text: p.text, Finish: model.FinishEnd}, nil
}

// A client of a provider is a protocol: how a request is written and an answer read.
func Example() {
	config := provider.Config{Model: "parrot-1", Client: providertest.Client(func(url, body string) string { return `{"say": "` + body + `!"}` })}
	m := provider.New(config, provider.Protocol{
		URL: "https://parrot.example.com/say",
		Request: func(r model.Request, _ *chat.ToolList) *endpoint.Document {
			return &endpoint.Document{Parts: [][]byte{[]byte("hello")}}
		},
		Decoder: func(r *provider.ResponseReader) provider.Decoder { return &parrot{response: r} },
	})
	for delta, err := range m.Generate(context.Background(), providertest.HelloRequest()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(delta.Answer.Text)
	}
	// Output: hello!
}
