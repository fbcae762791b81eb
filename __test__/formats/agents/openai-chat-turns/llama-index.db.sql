PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE llama_index_memory (
	id INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	timestamp BIGINT NOT NULL, 
	role VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	data JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "llama_index_memory" VALUES(1,'river-1',1796031274525615517,'user','active','{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "How deep is the Elbe in Dresden?"}]}');
INSERT INTO "llama_index_memory" VALUES(2,'river-1',1796031274525721826,'assistant','active','{"role": "assistant", "additional_kwargs": {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "depth", "arguments": "{\"river\": \"Elbe\"}"}}]}, "blocks": [{"block_type": "text", "text": "Ask the gauge."}]}');
INSERT INTO "llama_index_memory" VALUES(3,'river-1',1796031274525745152,'tool','active','{"role": "tool", "additional_kwargs": {"tool_call_id": "c1"}, "blocks": [{"block_type": "text", "text": "Error: name a place"}]}');
INSERT INTO "llama_index_memory" VALUES(4,'river-1',1796031274525752704,'assistant','active','{"role": "assistant", "additional_kwargs": {"tool_calls": [{"id": "c2", "type": "function", "function": {"name": "depth", "arguments": "{\"river\": \"Elbe\", \"place\": \"Dresden\"}"}}]}, "blocks": [{"block_type": "text", "text": "Once more."}]}');
INSERT INTO "llama_index_memory" VALUES(5,'river-1',1796031274525763250,'tool','active','{"role": "tool", "additional_kwargs": {"tool_call_id": "c2"}, "blocks": [{"block_type": "text", "text": "2.1 m"}]}');
INSERT INTO "llama_index_memory" VALUES(6,'river-1',1796031274525767878,'assistant','active','{"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "The Elbe is 2.1 m deep in Dresden."}]}');
CREATE INDEX ix_llama_index_memory_key ON llama_index_memory ("key");
CREATE INDEX ix_llama_index_memory_status ON llama_index_memory (status);
CREATE INDEX ix_llama_index_memory_timestamp ON llama_index_memory (timestamp);
COMMIT;
