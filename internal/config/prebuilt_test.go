package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// prebuiltEnv has the variables that the prebuilt files require.
func prebuiltEnv(more map[string]string) yamldoc.Env {
	all := map[string]string{
		"SQLITE_DATABASE": "data/a.db", "MYSQL_DATABASE": "d", "MYSQL_USER": "u", "MYSQL_PASSWORD": "p",
		"POSTGRES_DATABASE": "d", "POSTGRES_USER": "u", "POSTGRES_PASSWORD": "p",
	}
	for name, value := range more {
		all[name] = value
	}
	return func(name string) (string, bool) { value, ok := all[name]; return value, ok }
}

// Each prebuilt file loads. Its tools and toolsets are those of Toolbox 1.12.0.
func TestLoadFiles_Prebuilt(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"sqlite": {"sqlite_database_tools": "execute_sql list_tables"},
		"mysql": {
			"data":    "execute_sql list_tables get_query_plan list_active_queries",
			"monitor": "get_query_plan list_active_queries list_all_locks list_table_fragmentation list_table_stats list_tables_missing_unique_indexes show_query_stats",
		},
		"postgres": {
			"data":        "execute_sql list_tables list_views list_schemas list_triggers list_indexes list_sequences list_stored_procedure",
			"monitor":     "list_query_stats get_query_plan list_database_stats list_active_queries long_running_transactions list_locks",
			"health":      "list_top_bloated_tables list_invalid_indexes list_table_stats get_column_cardinality list_autovacuum_configurations list_tablespaces database_overview list_pg_settings",
			"view-config": "list_available_extensions list_installed_extensions list_memory_configurations list_pg_settings database_overview",
			"replication": "replication_stats list_replication_slots list_publication_tables list_roles list_pg_settings database_overview",
		},
	} {
		cfg, err := config.LoadFiles([]string{"prebuilt:" + name, "prebuilt:" + name}, prebuiltEnv(nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, members := map[string]string{}, map[string]bool{}
		for _, s := range cfg.Toolsets {
			got[s.Name] = strings.Join(s.Tools, " ")
			for _, tool := range s.Tools {
				members[tool] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(cfg.Tools) != len(members) {
			t.Errorf("%s: %d tools, %d of them in toolsets", name, len(cfg.Tools), len(members))
		}
		again, err := config.ReadFiles(cfg.Files, prebuiltEnv(nil))
		if err != nil || len(again.Tools) != len(cfg.Tools) {
			t.Errorf("%s, as recorded: %d tools, %v", name, len(again.Tools), err)
		}
	}
}

func TestLoadFiles_PrebuiltVariables(t *testing.T) {
	load := func(name string, env map[string]string) *config.Config {
		t.Helper()
		cfg, err := config.LoadFiles([]string{"prebuilt:" + name}, prebuiltEnv(env))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	if s := load("sqlite", nil).Sources[0]; filepath.ToSlash(s.Database) != "data/a.db" {
		t.Errorf("%+v", s)
	}
	if s := load("postgres", nil).Sources[0]; s.Host != "localhost" || s.Port != 5432 || s.Params != nil {
		t.Errorf("%+v", s)
	}
	s := load("postgres", map[string]string{"POSTGRES_HOST": "db", "POSTGRES_PORT": "99", "POSTGRES_QUERY_PARAMS": "sslmode=require&application_name=a%20b"}).Sources[0]
	if diff := cmp.Diff(map[string]string{"sslmode": "require", "application_name": "a b"}, s.Params); diff != "" || s.Host != "db" || s.Port != 99 {
		t.Errorf("%+v %s", s, diff)
	}
	s = load("mysql", map[string]string{"MYSQL_QUERY_PARAMS": "{charset: utf8mb4}"}).Sources[0]
	if diff := cmp.Diff(map[string]string{"charset": "utf8mb4"}, s.Params); diff != "" || s.Port != 3306 {
		t.Errorf("%+v %s", s, diff)
	}
}

func TestLoadFiles_PrebuiltRejected(t *testing.T) {
	secret := "pw-canary-77"
	for _, tt := range []struct {
		paths string
		env   map[string]string
		want  string
	}{
		{"prebuilt:bigquery", nil, `prebuilt:bigquery: there is no prebuilt file "bigquery" (there are mysql, postgres, sqlite)`},
		{"prebuilt:../config", nil, `there is no prebuilt file "../config"`},
		{"prebuilt:", nil, `there is no prebuilt file ""`},
		{"prebuilt:mysql prebuilt:postgres", nil, `tool "execute_sql" is declared twice`},
		{"prebuilt:postgres", map[string]string{"POSTGRES_PORT": "many"}, "port"},
		{"prebuilt:postgres", map[string]string{"POSTGRES_QUERY_PARAMS": secret}, "queryParams: must be a mapping"},
		{"prebuilt:postgres", map[string]string{"POSTGRES_QUERY_PARAMS": "{a: [" + secret + "]}"}, "queryParams: must be a mapping"},
		{"prebuilt:postgres", map[string]string{"POSTGRES_QUERY_PARAMS": "a=" + secret + "&a=1"}, "queryParams: must be a mapping"},
	} {
		_, err := config.LoadFiles(strings.Fields(tt.paths), prebuiltEnv(tt.env))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s %v: got %v", tt.paths, tt.env, err)
		}
	}
	_, err := config.LoadFiles([]string{"prebuilt:sqlite"}, func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "variable SQLITE_DATABASE is not set") {
		t.Errorf("got %v", err)
	}
}

// A type of tool that this version lacks is named.
func TestReadFiles_UnknownCatalogType(t *testing.T) {
	_, err := config.ReadFiles([]yamldoc.File{{Path: "f.yaml", Data: []byte(`
{kind: source, name: db, type: sqlite, database: a.db}
---
{kind: tool, name: create_memory, type: create-memory, source: db}
---
{kind: tool, name: list_view, type: postgres-list-view, source: db}
---
{kind: tool, name: list_views, type: postgres-list-views, source: db}
`)}}, nil)
	for _, want := range []string{`tool type "create-memory" is unknown (Toolbox has it, and this version does not`, `tool type "postgres-list-view" is unknown (did you mean "postgres-list-views"?)`, "needs a source of type postgres"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}
