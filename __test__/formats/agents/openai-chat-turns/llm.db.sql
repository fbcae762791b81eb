PRAGMA foreign_keys = OFF;
CREATE TABLE "messages" (
   "hash" TEXT PRIMARY KEY,
   "parent_hash" TEXT REFERENCES "messages"("hash"),
   "role" TEXT,
   "provider_metadata" TEXT
);
INSERT INTO "messages" VALUES('b2:6b79a0175e8bc79262de27bcc3d78359',NULL,'system',NULL);
INSERT INTO "messages" VALUES('b2:79d3ec3c2d6f27f626ced5d3fd336634','b2:6b79a0175e8bc79262de27bcc3d78359','user',NULL);
INSERT INTO "messages" VALUES('b2:f02ce3eb4f63640562dd9dfdd751d0cb','b2:79d3ec3c2d6f27f626ced5d3fd336634','assistant',NULL);
INSERT INTO "messages" VALUES('b2:05c3e6604824f1c216d119c553c84946','b2:f02ce3eb4f63640562dd9dfdd751d0cb','tool',NULL);
INSERT INTO "messages" VALUES('b2:d71b83934a0d6962175ef43354abdfb5','b2:05c3e6604824f1c216d119c553c84946','assistant',NULL);
INSERT INTO "messages" VALUES('b2:764e8e3b92977e59d9091356aa32268b','b2:d71b83934a0d6962175ef43354abdfb5','tool',NULL);
INSERT INTO "messages" VALUES('b2:7e7fbde192f79aae461986250a96e05a','b2:764e8e3b92977e59d9091356aa32268b','assistant',NULL);
CREATE TABLE "parts" (
   "id" INTEGER PRIMARY KEY,
   "message_hash" TEXT REFERENCES "messages"("hash"),
   "position" INTEGER,
   "type" TEXT,
   "tool_name" TEXT,
   "text" TEXT,
   "payload" TEXT
);
INSERT INTO "parts" VALUES(1,'b2:6b79a0175e8bc79262de27bcc3d78359',0,'text',NULL,'You know rivers.',NULL);
INSERT INTO "parts" VALUES(2,'b2:79d3ec3c2d6f27f626ced5d3fd336634',0,'text',NULL,'How deep is the Elbe in Dresden?',NULL);
INSERT INTO "parts" VALUES(3,'b2:f02ce3eb4f63640562dd9dfdd751d0cb',0,'text',NULL,'Ask the gauge.',NULL);
INSERT INTO "parts" VALUES(4,'b2:f02ce3eb4f63640562dd9dfdd751d0cb',1,'tool_call','depth',NULL,'{"name": "depth", "arguments": {"river": "Elbe"}, "tool_call_id": "c0"}');
INSERT INTO "parts" VALUES(5,'b2:05c3e6604824f1c216d119c553c84946',0,'tool_result','depth',NULL,'{"name": "depth", "output": "Error: name a place", "tool_call_id": "c0", "exception": "ValueError: name a place"}');
INSERT INTO "parts" VALUES(6,'b2:d71b83934a0d6962175ef43354abdfb5',0,'text',NULL,'Once more.',NULL);
INSERT INTO "parts" VALUES(7,'b2:d71b83934a0d6962175ef43354abdfb5',1,'tool_call','depth',NULL,'{"name": "depth", "arguments": {"river": "Elbe", "place": "Dresden"}, "tool_call_id": "c1"}');
INSERT INTO "parts" VALUES(8,'b2:764e8e3b92977e59d9091356aa32268b',0,'tool_result','depth',NULL,'{"name": "depth", "output": "2.1 m", "tool_call_id": "c1"}');
INSERT INTO "parts" VALUES(9,'b2:7e7fbde192f79aae461986250a96e05a',0,'text',NULL,'The Elbe is 2.1 m deep in Dresden.',NULL);
CREATE TABLE "threads" (
   "id" TEXT PRIMARY KEY,
   "name" TEXT,
   "tip_message_hash" TEXT REFERENCES "messages"("hash"),
   "forked_from" TEXT REFERENCES "threads"("id"),
   "datetime_utc" TEXT
);
INSERT INTO "threads" VALUES('01m8nwp5vc1kp77txsfgcev5h7','How deep is the Elbe in Dresden?','b2:7e7fbde192f79aae461986250a96e05a',NULL,'2026-11-30 09:30:59.829061+00:00');
CREATE TABLE "turns" (
   "id" TEXT PRIMARY KEY,
   "thread_id" TEXT REFERENCES "threads"("id"),
   "parent_message_hash" TEXT REFERENCES "messages"("hash"),
   "tip_message_hash" TEXT REFERENCES "messages"("hash"),
   "model" TEXT,
   "resolved_model" TEXT,
   "options_json" TEXT,
   "schema_id" TEXT REFERENCES "schemas"("id"),
   "input_tokens" INTEGER,
   "output_tokens" INTEGER,
   "token_details" TEXT,
   "duration_ms" INTEGER,
   "datetime_utc" TEXT
, "response_json" TEXT);
INSERT INTO "turns" VALUES('01m8nwp5vfnbdvfxwxn5ghwxs2','01m8nwp5vc1kp77txsfgcev5h7','b2:79d3ec3c2d6f27f626ced5d3fd336634','b2:f02ce3eb4f63640562dd9dfdd751d0cb','script',NULL,NULL,NULL,NULL,NULL,NULL,0,'2026-11-30T09:30:59.823353+00:00',NULL);
INSERT INTO "turns" VALUES('01m8nwp5vfnbdvfxwxn5ghwxs3','01m8nwp5vc1kp77txsfgcev5h7','b2:05c3e6604824f1c216d119c553c84946','b2:d71b83934a0d6962175ef43354abdfb5','script',NULL,NULL,NULL,NULL,NULL,NULL,0,'2026-11-30T09:30:59.823505+00:00',NULL);
INSERT INTO "turns" VALUES('01m8nwp5vfnbdvfxwxn5ghwxs4','01m8nwp5vc1kp77txsfgcev5h7','b2:764e8e3b92977e59d9091356aa32268b','b2:7e7fbde192f79aae461986250a96e05a','script',NULL,NULL,NULL,NULL,NULL,NULL,0,'2026-11-30T09:30:59.823575+00:00',NULL);
