package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/glebarez/sqlite"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/session/database"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// The task that bench runs on every system.
const (
	app        = "bench"
	rolePrompt = "You tell people the weather of their city."
	question   = "What is the weather in Vienna?"
	verdict    = "It is sunny in Vienna."
	toolName   = "forecast"
	toolText   = "Tell the weather of a city."
)

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type weather struct {
	Report string `json:"report"`
}

func forecast(_ tool.Context, in place) (weather, error) { return weather{"sunny in " + in.City}, nil }

// scripted calls the tool once and then answers with the verdict.
type scripted struct{}

// Name implements model.LLM.
func (scripted) Name() string { return "scripted" }

// GenerateContent implements model.LLM.
func (scripted) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		last := r.Contents[len(r.Contents)-1]
		part := genai.NewPartFromFunctionCall(toolName, map[string]any{"city": "Vienna"})
		if last.Parts[0].FunctionResponse != nil {
			part = genai.NewPartFromText(verdict)
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromParts([]*genai.Part{part}, genai.RoleModel)}, nil)
	}
}

// adkTasks runs tasks of adk-go on its SQLite sessions, atATime concurrently, each in
// a session of its own.
func adkTasks(atATime int) (peer, error) {
	sessions, err := adkSessions(atATime)
	if err != nil {
		return nil, err
	}
	r, err := adkRunner(sessions)
	return func(n int) error {
		return runShared(n, atATime, func(int) error { return adkTask(r, sessions) })
	}, err
}

// adkSessions opens a session store with one connection: with a pool, two concurrent
// agents are enough for SQLITE_BUSY.
func adkSessions(atATime int) (session.Service, error) {
	db, err := sql.Open("sqlite", fmt.Sprintf("file:adk%d.sqlite", atATime)+durable)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	sessions, err := database.NewSessionService(sqlite.Dialector{Conn: db}, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	return sessions, database.AutoMigrate(sessions)
}

func adkRunner(sessions session.Service) (*runner.Runner, error) {
	forecaster, err := functiontool.New(functiontool.Config{Name: toolName, Description: toolText}, forecast)
	if err != nil {
		return nil, err
	}
	guide, err := llmagent.New(llmagent.Config{Name: "guide", Model: scripted{}, Instruction: rolePrompt, Tools: []tool.Tool{forecaster}})
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Config{AppName: app, Agent: guide, SessionService: sessions})
}

func adkTask(r *runner.Runner, sessions session.Service) error {
	ctx := context.Background()
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: app, UserID: "user"})
	if err != nil {
		return err
	}
	said := ""
	for e, err := range r.Run(ctx, "user", made.Session.ID(), genai.NewContentFromText(question, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if e.IsFinalResponse() {
			said = e.Content.Parts[0].Text
		}
	}
	if said != verdict {
		return errors.New("unexpected answer: " + said)
	}
	return nil
}
