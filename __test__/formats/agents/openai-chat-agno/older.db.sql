PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE agno_sessions (
	session_id VARCHAR NOT NULL, 
	session_type VARCHAR NOT NULL, 
	agent_id VARCHAR, 
	team_id VARCHAR, 
	workflow_id VARCHAR, 
	user_id VARCHAR, 
	session_data JSON, 
	agent_data JSON, 
	team_data JSON, 
	workflow_data JSON, 
	metadata JSON, 
	runs JSON, 
	summary JSON, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT, 
	PRIMARY KEY (session_id)
);
INSERT INTO "agno_sessions" VALUES('river-1','agent','818d0807-d048-4881-9066-fb60a3727d08',NULL,NULL,NULL,'"{\"session_state\": {}, \"session_metrics\": {\"input_tokens\": 0, \"output_tokens\": 0, \"total_tokens\": 0, \"audio_input_tokens\": 0, \"audio_output_tokens\": 0, \"audio_total_tokens\": 0, \"cache_read_tokens\": 0, \"cache_write_tokens\": 0, \"reasoning_tokens\": 0, \"timer\": null, \"time_to_first_token\": null, \"duration\": 0.4203616040031193, \"provider_metrics\": null, \"additional_metrics\": null}}"','"{\"agent_id\": \"818d0807-d048-4881-9066-fb60a3727d08\", \"model\": {\"id\": \"script\", \"name\": \"OpenAIChat\", \"provider\": \"OpenAI\"}}"',NULL,NULL,'null','"[{\"run_id\": \"8e41c26d-b18f-4dee-add6-331fc6d1e794\", \"agent_id\": \"818d0807-d048-4881-9066-fb60a3727d08\", \"session_id\": \"river-1\", \"content\": \"Ask the gauge.Once more.The Elbe is 2.1 m deep in Dresden.\", \"content_type\": \"str\", \"model\": \"script\", \"model_provider\": \"OpenAI\", \"metrics\": {\"time_to_first_token\": 0.39000960999692325, \"duration\": 0.4203616040031193}, \"created_at\": 1795982247, \"status\": \"COMPLETED\", \"messages\": [{\"content\": \"<instructions>\\nYou know rivers.\\n</instructions>\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"system\", \"created_at\": 1795982255}, {\"content\": \"How deep is the Elbe in Dresden?\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"user\", \"created_at\": 1795982255}, {\"content\": \"Ask the gauge.\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c1\", \"function\": {\"arguments\": \"{\\\"river\\\": \\\"Elbe\\\"}\", \"name\": \"depth\"}, \"type\": \"function\"}], \"created_at\": 1795982255}, {\"content\": \"name a place\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"tool\", \"tool_call_id\": \"c1\", \"tool_name\": \"depth\", \"tool_args\": {\"river\": \"Elbe\"}, \"tool_call_error\": true, \"created_at\": 1795982255}, {\"content\": \"Once more.\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c2\", \"function\": {\"arguments\": \"{\\\"river\\\": \\\"Elbe\\\", \\\"place\\\": \\\"Dresden\\\"}\", \"name\": \"depth\"}, \"type\": \"function\"}], \"created_at\": 1795982255}, {\"content\": \"2.1 m\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"tool\", \"tool_call_id\": \"c2\", \"tool_name\": \"depth\", \"tool_args\": {\"river\": \"Elbe\", \"place\": \"Dresden\"}, \"tool_call_error\": false, \"created_at\": 1795982255}, {\"content\": \"The Elbe is 2.1 m deep in Dresden.\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"assistant\", \"created_at\": 1795982255}], \"tools\": [{\"tool_call_id\": \"c1\", \"tool_name\": \"depth\", \"tool_args\": {\"river\": \"Elbe\"}, \"tool_call_error\": true, \"result\": \"name a place\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795982247, \"requires_confirmation\": null, \"confirmed\": null, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": null, \"answered\": null, \"external_execution_required\": null}, {\"tool_call_id\": \"c2\", \"tool_name\": \"depth\", \"tool_args\": {\"river\": \"Elbe\", \"place\": \"Dresden\"}, \"tool_call_error\": false, \"result\": \"2.1 m\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795982247, \"requires_confirmation\": null, \"confirmed\": null, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": null, \"answered\": null, \"external_execution_required\": null}], \"input\": {\"input_content\": \"How deep is the Elbe in Dresden?\"}}]"','null',1795982255,1795982255);
CREATE INDEX idx_agno_sessions_created_at ON agno_sessions (created_at);
CREATE INDEX idx_agno_sessions_session_type ON agno_sessions (session_type);
COMMIT;
