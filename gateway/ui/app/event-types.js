// The types of events that the record may have, as docs/record.md lists them.

export const eventTypes = [
  "agent_spawned", "agent_terminated", "approval_decided", "approval_escalated", "approval_pattern_ended", "approval_requested",
  "budget_warning", "context_compressed", "error", "group_closed", "group_opened", "group_registered", "group_unregistered",
  "item_changed", "mail_dropped", "message", "model_answered", "paused", "prompt_got", "question_answered", "question_asked", "result",
  "resumed", "role_changed", "state_transition", "task_denied", "task_paused", "task_retried", "task_started", "tool_call", "tool_error",
  "tool_result", "ungrounded_answer",
];
