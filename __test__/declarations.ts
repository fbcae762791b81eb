// What is declared for users is what lib/ does: `npm run check` compiles this file against the JavaScript of lib/, and
// fails where a name, a parameter or a result is in one of them alone, or has another type there. It is never run.

import type * as declared from '../index.js';
import type * as clean from '../lib/clean.js';
import type * as embedder from '../lib/embedder.js';
import type * as reader from '../lib/read-traces.js';
import type * as scorer from '../lib/scorer.js';
import type * as choose from '../lib/select.js';
import type * as machine from '../lib/sessions.js';
import type * as sharing from '../lib/share.js';
import type * as postgresStore from '../lib/store/postgres.js';
import type * as traceMemory from '../lib/trace-memory.js';
import type * as vectorCache from '../lib/vector-cache.js';
import type * as declaredPostgres from '../postgres.js';

/** `true` for identical types: that they are assignable to each other is not enough, as methods with narrower parameters are. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : { inLib: A; declared: B };

/** A function by its parameters and its result. */
type Call<F> = F extends (...args: infer Parameters) => infer Result ? [Parameters, Result] : F;

/** The public members, each as a call or a value. */
type Members<T> = { [Name in keyof T]: Call<T[Name]> };

/** A class by how it is made, its members, and its static members. */
// biome-ignore lint/suspicious/noExplicitAny: any class at all
type Shape<Class extends abstract new (...args: any) => unknown> = {
  parameters: ConstructorParameters<Class>;
  members: Members<InstanceType<Class>>;
  statics: Members<Omit<Class, 'prototype'>>;
};

function same<A, B>(_: Same<A, B>): void {}

same<Shape<typeof scorer.Scorer>, Shape<typeof declared.Scorer>>(true);
same<Shape<typeof vectorCache.VectorCache>, Shape<typeof declared.VectorCache>>(true);
same<Shape<typeof traceMemory.TraceMemory>, Shape<typeof declared.TraceMemory>>(true);
// The scorer alone calls the other methods of a store.
same<
  Pick<InstanceType<typeof postgresStore.PostgresStore>, keyof declaredPostgres.PostgresStore>,
  Pick<declaredPostgres.PostgresStore, keyof declaredPostgres.PostgresStore>
>(true);
same<
  ConstructorParameters<typeof postgresStore.PostgresStore>,
  ConstructorParameters<typeof declaredPostgres.PostgresStore>
>(true);

same<Call<typeof embedder.configureEmbedder>, Call<typeof declared.configureEmbedder>>(true);
same<Call<typeof embedder.embed>, Call<typeof declared.embed>>(true);
same<Call<typeof embedder.embedderStatus>, Call<typeof declared.embedderStatus>>(true);
same<Call<typeof scorer.evaluateValue>, Call<typeof declared.evaluateValue>>(true);
same<Call<typeof vectorCache._getLocalCache>, Call<typeof declared._getLocalCache>>(true);
same<Call<typeof clean.cleanPii>, Call<typeof declared.cleanPii>>(true);
same<Call<typeof clean.clean>, Call<typeof declared.clean>>(true);
same<Call<typeof choose.select>, Call<typeof declared.select>>(true);
same<Call<typeof sharing.share>, Call<typeof declared.share>>(true);
same<Call<typeof reader.readTraces>, Call<typeof declared.readTraces>>(true);
same<Call<typeof machine.sessions>, Call<typeof declared.sessions>>(true);
same<Call<typeof reader.traceFromMessages>, Call<typeof declared.traceFromMessages>>(true);

// The names of each entry point, all of which but the class of errors are checked above.
same<
  keyof typeof declared,
  | ('Scorer' | 'TraceMemory' | 'VectorCache' | 'configureEmbedder' | 'embed' | 'embedderStatus')
  | ('evaluateValue' | '_getLocalCache' | 'clean' | 'cleanPii' | 'select' | 'share' | 'readTraces')
  | ('sessions' | 'traceFromMessages' | 'KnowledgePulseError')
>(true);
same<keyof typeof declaredPostgres, 'PostgresStore'>(true);
