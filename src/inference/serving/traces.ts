// Optional tracing over OTLP: one span per request, with OpenTelemetry's names for generative AI. The libraries are
// loaded only if an address is configured. Spans contain neither prompts nor responses.

import type { IncomingHttpHeaders } from 'node:http';
import type { Attributes, Span } from '@opentelemetry/api';
import type { ServedRequest } from './meter.ts';

export interface TraceOptions {
  /** OTLP/HTTP endpoint of the collector, e.g. `http://127.0.0.1:4318`. */
  url: string;
  headers: Record<string, string>;
  /** Fraction of requests to trace if the caller has made no sampling decision. 1 traces all of them. */
  sampleRatio: number;
}

export interface Traces {
  /** Joins the caller's trace if the request carries one. */
  start(headers: IncomingHttpHeaders, operation: string, model: string): Trace;
  /** Exports the remaining spans. */
  close(): Promise<void>;
}

export interface Trace {
  /** Headers for the backend's request, so that its own spans join the trace. */
  readonly headers: Readonly<Record<string, string>>;
  end(served: ServedRequest, requestId: string, errorCode: string | null): void;
}

export async function createTraces({ url, headers, sampleRatio }: TraceOptions): Promise<Traces> {
  const [api, core, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPTraceExporter({ url: toTracesUrl(url), headers });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'millrace' }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleRatio) }),
    // The processor's queue is bounded: spans that the collector does not accept in time are dropped.
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('millrace');
  const propagator = new core.W3CTraceContextPropagator();

  function start(incoming: IncomingHttpHeaders, operation: string, model: string): Trace {
    const parent = propagator.extract(api.ROOT_CONTEXT, incoming, api.defaultTextMapGetter);
    const span = tracer.startSpan(
      `${operation} ${model}`,
      {
        kind: api.SpanKind.SERVER,
        attributes: { 'gen_ai.operation.name': operation, 'gen_ai.request.model': model },
      },
      parent,
    );
    const outgoing: Record<string, string> = {};
    propagator.inject(api.trace.setSpan(parent, span), outgoing, api.defaultTextMapSetter);
    return {
      headers: outgoing,
      end(served, requestId, errorCode) {
        span.setAttributes(toAttributes(served, requestId));
        if (errorCode !== null) fail(span, errorCode);
        span.end();
      },
    };
  }

  function fail(span: Span, code: string): void {
    span.setAttribute('error.type', code);
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: code });
  }

  return { start, close: () => provider.shutdown() };
}

/** The standard environment variable holds the collector's base URL, without the path. */
const toTracesUrl = (url: string) =>
  /\/v1\/traces\/?$/.test(url) ? url : `${url.replace(/\/+$/, '')}/v1/traces`;

function toAttributes(served: ServedRequest, requestId: string): Attributes {
  return {
    'gen_ai.provider.name': 'millrace',
    'gen_ai.response.model': served.served,
    'gen_ai.usage.input_tokens': served.usage?.prompt_tokens,
    'gen_ai.usage.output_tokens': served.usage?.completion_tokens,
    'millrace.request_id': requestId,
    'millrace.backend': served.backend,
    'millrace.outcome': served.outcome,
    'millrace.time_to_first_token_ms': served.firstTokenMs ?? undefined,
  };
}
