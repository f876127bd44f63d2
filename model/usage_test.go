package model_test

import (
	"math"
	"testing"

	"github.com/rolecall/rolecall/model"
)

func TestPrices_Cost(t *testing.T) {
	prices := model.TokenPrices{Input: 1_250_000_000, Cached: 125_000_000, Output: 10_000_000_000} // 1.25, 0.125 and 10 per million
	tests := []struct {
		name   string
		prices model.TokenPrices
		usage  model.TokenUsage
		want   string
	}{
		{"nothing", prices, model.TokenUsage{}, "0.000000"},
		{"a million of each", prices, model.TokenUsage{Input: 2_000_000, Cached: 1_000_000, Output: 1_000_000}, "11.375000"},
		{"one token", prices, model.TokenUsage{Input: 1}, "0.000001"},
		{"no price for cached tokens", model.TokenPrices{Input: 1e9}, model.TokenUsage{Input: 10, Cached: 10}, "0.000010"},
		{"more cached than sent", prices, model.TokenUsage{Input: 1_000_000, Cached: 5_000_000}, "0.125000"},
		{"negative counts", prices, model.TokenUsage{Input: -5, Cached: -7, Output: math.MinInt}, "0.000000"},
		{"counts overflow", model.TokenPrices{Input: 1e15, Output: 1e15}, model.TokenUsage{Input: math.MaxInt, Output: math.MaxInt}, "200000000.000000"},
		{"price overflows", model.TokenPrices{Input: math.MaxInt64}, model.TokenUsage{Input: math.MaxInt}, "2305843009.213693"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.prices.Cost(tt.usage).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := model.Money(-1_500_000).String(); got != "-0.001500" {
		t.Errorf("got %s", got)
	}
}
