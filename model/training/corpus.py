#!/usr/bin/env python3
"""Corpus assembly: turns checked-out public sources into one JSONL per source.

  corpus.py SRC_DIR OUT_DIR

SRC_DIR holds one folder per source (see "Where the text came from" in the model card, ../README.md).  Every output line is either
  {"t": "plain text document"}                                   language-model text
  {"m": [["user","..."],["assistant","..."], ...]}                chat document
Only sources with a licence that allows commercial use are read.
"""
import csv, glob, html, json, os, random, re, sys
from collections import Counter

SRC, OUT = sys.argv[1], sys.argv[2]
os.makedirs(OUT, exist_ok=True)
R = random.Random(7)
STATS = []

UNI = {'\u2018': "'", '\u2019': "'", '\u201c': '"', '\u201d': '"', '\u2013': '-', '\u2014': ' - ', '\u2026': '...',
       '\u00a0': ' ', '\u200b': '', '\u2060': '', '\ufeff': '', '\u00ad': '', '\u2010': '-', '\u2011': '-', '\u2212': '-',
       '\u2009': ' ', '\u202f': ' ', '\u200a': ' ', '\u2032': "'", '\u2033': '"', '\u02bc': "'"}
UNIRE = re.compile('|'.join(map(re.escape, UNI)))


def norm(s):
    s = UNIRE.sub(lambda m: UNI[m.group()], s)
    s = s.replace('\r', '')
    s = re.sub(r'[ \t]+', ' ', s)
    s = re.sub(r' *\n *', '\n', s)
    s = re.sub(r'\n{3,}', '\n\n', s)
    return s.strip()


def detok(s):
    """undo Penn-style tokenisation"""
    s = s.replace('``', '"').replace("''", '"')
    s = re.sub(r" (n't|'s|'re|'ve|'m|'ll|'d)\b", r'\1', s)
    s = re.sub(r' ([.,;:!?)\]])', r'\1', s)
    s = re.sub(r'([(\[]) ', r'\1', s)
    return s


def cap(s):
    return s[:1].upper() + s[1:]


def dot(s):
    s = s.strip()
    return s if s[-1:] in '.!?"' else s + '.'


def write(name, docs, licence):
    seen, n, b = set(), 0, 0
    with open(os.path.join(OUT, name + '.jsonl'), 'w') as f:
        for d in docs:
            key = d.get('t') or json.dumps(d['m'])
            key = key[:400]
            if key in seen:
                continue
            seen.add(key)
            line = json.dumps(d, ensure_ascii=False)
            f.write(line + '\n')
            n += 1
            b += len(line)
    STATS.append((name, licence, n, b))
    print(f'{name:24s} {n:8d} docs {b/1e6:8.2f} MB  {licence}', flush=True)


def mostly_ascii(s, p=0.97):
    return s and sum(c < '\u0250' for c in s) / len(s) >= p


# ---------------------------------------------------------------- Natural Instructions (per-task licence field)
NI_OK = {'CC BY 4.0', 'MIT', 'Apache 2.0', 'CC BY-SA 4.0', 'CC0: Public Domain', 'BSD', 'CC BY-SA 3.0', 'CC BY-SA',
         'GNU Free Documentation 2.0', 'AFL 3.0', 'CC BY', 'CC0', 'GFDL', 'CC BY 3.0', 'CDLA Permissive 2.0',
         'BSD 2-Clause', 'CC0 1.0 Universal', 'Public Domain',
         'LibriVox: Public Domain (https://librivox.org/pages/public-domain/)',
         'WordNet 3.0 license (https://wordnet.princeton.edu/license-and-commercial-use)', 'OANC'}
NI_BADCAT = {'Toxic Language Detection', 'Stereotype Detection', 'Gender Classification', 'Pos Tagging', 'Text to Code',
             'Code to Text', 'Wrong Candidate Generation', 'Ethics Classification', 'Named Entity Recognition',
             'Text Quality Evaluation', 'Question Decomposition', 'Misc.', 'Word Analogy', 'Linguistic Probing',
             'Negotiation Strategy Detection', 'Overlap Extraction', 'Translation', 'Keyword Tagging'}
NI_BADNAME = re.compile(r'mathqa|aqua|tweetqa|scruples|break_|hans_|winomt|healthfact|qasper|pubmed|atomic|head_qa|overruling|conll|'
                        r'mathdataset|hope_edi|craigslist|crows|stereoset|smcalflow|kpa_|code_x|sherliic|limit_|parsed_pdfs|'
                        r'asset|goemotions|wiqa_what|propara_struct|mmmlu|cfq|hybridqa|bless|haspart|country_|longest|gigaword|'
                        r'md_gender|winobias|review_polarity|products_reviews|cls_english|numeric_fused|xlsum|grailqa|'
                        r'naturalquestion|freebase|hotpot|triviaqa|gooaq|commongen|story_cloze|timetravel|protoqa|piqa|svamp')


def ni_load():
    for f in sorted(glob.glob(f'{SRC}/ni/tasks/*.json')):
        d = json.load(open(f))
        if d.get('Input_language') != ['English'] or d.get('Output_language') != ['English']:
            continue
        lic = d.get('Instance License', [])
        lic = lic if isinstance(lic, list) else [lic]
        if not lic or not all(x in NI_OK for x in lic):
            continue
        yield os.path.basename(f)[:-5], d, lic


STOP = set(('the a an and or but if then than that this these those is are was were be been being to of in on at by for with from up '
            'out as it its he she they them his her their him i you we my your our me us not no so very just do did does had has have '
            'would could should will can may might about into over after before when while who what which there here all some any one '
            'two more most other only own same too got get went go came come said told wanted decided day time home back took made see '
            'saw found asked started needed felt knew thought like really even never always still around ended up next last first '
            'because every much many lot things thing people man woman boy girl old new good great big little long away down off again '
            'now both how why where him himself herself bought tried put left right finally however until since also ago each few').split())


def story_topic(s):
    ws = [w.lower() for w in re.findall(r"[A-Za-z]{4,}", s)]
    c = Counter(w for w in ws if w not in STOP and not w.endswith(('ed', 'ing', 'ly')))
    if not c:
        return None
    best = [w for w, k in c.most_common(4)]
    return R.choice(best[:2])


STORY_ASK = ['Write a short story about {x}.', 'Tell me a short story about {x}.', 'Tell me a story that mentions {x}.',
             'Write a five sentence story about {x}.', 'Can you tell me a story about {x}?', 'Write a story. It should be about {x}.',
             'Please write a very short story about {x}.', 'Make up a story about {x}.']


def ni():
    text, chat, stories = [], [], []
    lics = Counter()
    for name, d, lic in ni_load():
        inst = d['Instances']
        cat = d['Categories'][0]
        key = name.split('_')[0]
        outs = lambda i: [o for o in i['output'] if o] or ['']
        if 'piqa_answer' in name and 'wrong' not in name:
            for i in inst:
                q, a = norm(i['input']), norm(outs(i)[0])
                if len(q) < 12 or len(a) < 15:
                    continue
                ql = q.lower()
                if ql.startswith('how') and q[-1] not in '?':
                    q = q.rstrip('.') + '?'
                elif not ql.startswith(('how', 'what', 'when', 'where', 'why', 'to ')) and q[-1] not in '?.':
                    q = q + '.'
                chat.append({'m': [['user', cap(q)], ['assistant', dot(cap(a))]]})
        elif re.search(r'naturalquestion_answer|freebase_qa_answer|hotpotqa_question_answering|triviaqa_answer|gooaq_answer', name):
            for i in inst:
                q, a = norm(i['input']), norm(outs(i)[0])
                q = q.replace('Question:', '').strip()
                if len(q) > 160 or len(a) > 80 or len(a) < 2:
                    continue
                if 'freebase' in name or a.islower():
                    a = ' '.join(w if w in ('of', 'the', 'and', 'in', 'a', 'an', 'to', 'for', 'on') else cap(w) for w in a.split())
                    a = cap(a)
                if q[-1:] not in '?.':
                    q += '?'
                chat.append({'m': [['user', cap(q)], ['assistant', dot(cap(a))]]})
        elif 'commongen_sentence' in name:
            for i in inst:
                ws = i['input'].split('#')
                a = max(outs(i)[:4], key=len)
                R.shuffle(ws)
                q = R.choice(['Write a sentence with the words: {w}.', 'Make a sentence using these words: {w}.',
                              'Use the words {w} in one sentence.', 'Write one sentence that contains {w}.']).format(w=', '.join(ws))
                chat.append({'m': [['user', q], ['assistant', dot(cap(detok(norm(a))))]]})
        elif 'story_cloze-rocstories_sentence_generation' in name:
            for i in inst:
                ss = re.split(r'Sentence\d: ?', i['input'])[1:]
                s = ' '.join(dot(norm(x)) for x in ss + [outs(i)[0]])
                stories.append(s)
        elif name.startswith('task065_timetravel'):
            for i in inst:
                m = re.match(r'Sentence 1:(.*?)Sentence 3:(.*?)Sentence 4:(.*?)Sentence 5:(.*?)Option 1:(.*?)Option 2:(.*)$', i['input'], re.S)
                if not m:
                    continue
                s1, s3, s4, s5, o1, o2 = [dot(norm(x)) for x in m.groups()]
                s2 = o1 if '1' in outs(i)[0] else o2
                stories.append(' '.join([s1, s2, s3, s4, s5]))
        elif 'protoqa_answer' in name:
            for i in inst:
                q = norm(i['input'])
                a = [norm(x) for x in outs(i)[:5]]
                q = cap(q)
                q = q if q[-1] in '?.' else q + ('?' if q.lower().startswith(('what', 'who', 'where', 'when', 'why', 'how')) else '.')
                if len(a) >= 3:
                    ans = R.choice([', '.join(a[:-1]) + ' and ' + a[-1] + '.', ', '.join(a) + '.'])
                else:
                    ans = ' or '.join(a) + '.'
                chat.append({'m': [['user', q], ['assistant', cap(ans)]]})
        elif 'arc_answer_generation' in name:
            for i in inst:
                m = re.match(r'(.*?)\(A\)(.*?)\(B\)(.*?)\(C\)(.*?)(?:\(D\)(.*))?$', norm(i['input']), re.S)
                if not m:
                    continue
                q = m.group(1).strip()
                ops = [x.strip() for x in m.groups()[1:] if x]
                o = outs(i)[0].strip()
                k = 'ABCD'.find(o[:1])
                if k < 0 or k >= len(ops):
                    continue
                a = dot(cap(ops[k]))
                if R.random() < 0.5:
                    chat.append({'m': [['user', q + '\n' + '\n'.join(f'{"ABCD"[j]}) {x}' for j, x in enumerate(ops))],
                                       ['assistant', f'{"ABCD"[k]}) {ops[k]}']]})
                elif not re.search(r'which of (the|these)|following|these', q, re.I):
                    chat.append({'m': [['user', q], ['assistant', a]]})
                text.append((name, f'{q} {a}'))
        elif 'svamp' in name:
            for i in inst:
                q = norm(i['input']).replace('Context:', '').replace('Question:', '')
                chat.append({'m': [['user', re.sub(r' +', ' ', q).strip()], ['assistant', outs(i)[0].replace('.0', '') + '.']]})
        elif 'amazonfood_summary_text' in name:
            for i in inst:
                t = norm(html.unescape(re.sub(r'<[^>]+>', ' ', i['input'])))
                a = norm(html.unescape(outs(i)[0]))
                text.append((name, t))
                if len(t) < 500 and len(a) > 8:
                    chat.append({'m': [['user', R.choice(['Summarize this review in a few words: ', 'Write a short title for this review: ', 'Summarize: ']) + t],
                                       ['assistant', cap(a)]]})
        elif 'amazonfood_polarity_classification' in name:
            for i in inst:
                t = norm(html.unescape(re.sub(r'<[^>]+>', ' ', i['input'])))
                if len(t) < 400 and outs(i)[0] in ('True', 'False', 'positive', 'negative', '1', '0'):
                    a = 'Positive' if outs(i)[0] in ('True', 'positive', '1') else 'Negative'
                    chat.append({'m': [['user', R.choice(['Is this review positive or negative?\n', 'Classify the sentiment of this review as positive or negative: ']) + t],
                                       ['assistant', a + '.']]})
        elif 'mocha_answer' in name or 'xquad_en_answer' in name:
            for i in inst:
                t = detok(norm(i['input']))
                m = re.match(r'(?:Context:|Passage:)?(.*?)Question:(.*)$', t, re.S)
                if not m or len(t) > 1400:
                    continue
                a = dot(cap(detok(norm(outs(i)[0]))))
                c, q = m.group(1).strip(), cap(m.group(2).strip())
                chat.append({'m': [['user', f'{c}\n\nQuestion: {q}' if R.random() < .5 else f'Read this text and answer the question.\n\n{c}\n\n{q}'], ['assistant', a]]})
        elif cat in NI_BADCAT or NI_BADNAME.search(name):
            continue
        else:
            for i in inst:
                t = detok(norm(i['input']))
                t = re.sub(r'(?<!\n)\b(Question|Context|Passage|Answer|Sentence ?\d|Option ?\d|Explanation|Background Paragraph|Story|Fact|Topic|Statement|Paragraph):', r'\n\1:', t).strip()
                o = detok(norm(outs(i)[0]))
                text.append((name, f'{t}\nAnswer: {o}' if 'Question' in cat or len(o) < 40 else f'{t}\n{o}'))
        lics[lic[0]] += 1
    # at most one text instance per passage
    seen, keep = set(), []
    R.shuffle(text)
    for name, t in text:
        k = re.sub(r'^[A-Za-z0-9 ]+:', '', t).strip()[:60]
        if k in seen or not mostly_ascii(t) or len(t) < 60:
            continue
        seen.add(k)
        keep.append({'t': t})
    print(dict(lics))
    write('ni_text', keep, 'Natural Instructions, tasks under CC BY / CC BY-SA / MIT / Apache-2.0 / BSD / CC0 / OANC only')
    write('ni_chat', chat, 'same')
    st = []
    for s in stories:
        s = norm(s)
        if len(s) < 100 or not mostly_ascii(s):
            continue
        st.append({'t': s})
        x = story_topic(s)
        if x:
            st.append({'m': [['user', R.choice(STORY_ASK).format(x=x)], ['assistant', s]]})
    write('ni_stories', st, 'Natural Instructions (Story Cloze task CC BY-SA, TimeTravel task MIT)')


# ---------------------------------------------------------------- books
def xhtml_text(s):
    s = re.sub(r'<(head|style|script).*?</\1>', '', s, flags=re.S)
    s = re.sub(r'<a [^>]*epub:type="noteref".*?</a>', '', s, flags=re.S)
    s = re.sub(r'</(p|h\d|li|blockquote|section|header|tr)>', '\n\n', s)
    s = re.sub(r'<br ?/?>', '\n', s)
    s = re.sub(r'<[^>]+>', '', s)
    s = html.unescape(s)
    s = re.sub(r'[ \t]*\n[ \t]*', '\n', s)
    paras = [re.sub(r'\s+', ' ', p).strip() for p in s.split('\n\n')]
    return norm('\n\n'.join(p for p in paras if p))


def chunks(t, n):
    """split a long text at paragraph ends into pieces of about n characters"""
    out, cur = [], ''
    for p in t.split('\n\n'):
        if len(cur) + len(p) > n and cur:
            out.append(cur.strip())
            cur = ''
        cur += p + '\n\n'
    if cur.strip():
        out.append(cur.strip())
    return out


def se():
    docs = []
    for f in sorted(glob.glob(f'{SRC}/se/*/src/epub/text/*.xhtml')):
        b = os.path.basename(f)
        if re.match(r'(colophon|imprint|titlepage|uncopyright|halftitle|dedication|endnotes|loi|toc|epigraph|introduction|preface)', b):
            continue
        t = xhtml_text(open(f).read())
        if len(t) > 600:
            docs += [{'t': c} for c in chunks(t, 6500)]
    write('standard_ebooks', docs, 'CC0 / public domain (Standard Ebooks)')


def cnxml_text(s):
    m = re.search(r'<content.*?>(.*)</content>', s, re.S)
    s = m.group(1) if m else s
    s = re.sub(r'<(m:math|math|table|figure|media|glossary|exercise|equation|code)\b.*?</\1>', ' ', s, flags=re.S)
    s = re.sub(r'</(para|title|item|note|section|list)>', '\n\n', s)
    s = re.sub(r'<[^>]+>', '', s)
    s = html.unescape(s)
    ps = [re.sub(r'\s+', ' ', p).strip() for p in re.split(r'\n\s*\n', s)]
    return norm('\n\n'.join(p for p in ps if len(p) > 2))


def openstax():
    docs = []
    for b in sorted(os.listdir(f'{SRC}/os')):
        for f in glob.glob(f'{SRC}/os/{b}/modules/*/index.cnxml'):
            raw = open(f).read()
            if b == 'physics' and raw.count('<m:math') > 60:
                continue
            t = cnxml_text(raw)
            t = '\n\n'.join(p for p in t.split('\n\n') if len(p) > 40 and not re.search(r'https?://|openstax', p))
            if len(t) > 500:
                docs += [{'t': c} for c in chunks(t, 6500)]
            g = re.search(r'<glossary>(.*?)</glossary>', raw, re.S)
            if g:
                for term, mean in re.findall(r'<term[^>]*>(.*?)</term>.*?<meaning[^>]*>(.*?)</meaning>', g.group(1), re.S):
                    term, mean = [norm(html.unescape(re.sub(r'<[^>]+>', '', x))) for x in (term, mean)]
                    mean = re.sub(r'\s+', ' ', mean)
                    if 3 < len(term) < 40 and 20 < len(mean) < 220:
                        q = R.choice(['What is {x}?', 'Define {x}.', 'What does {x} mean?', 'Explain the term {x}.']).format(x=term)
                        docs.append({'m': [['user', q], ['assistant', dot(cap(term) + ' means ' + mean if R.random() < .3 else cap(term) + ': ' + mean)]]})
    write('openstax', docs, 'CC BY 4.0 (OpenStax: college success, anthropology, physics, world history, python programming, microbiology)')


def kids():
    docs = []
    for d in ('asp', 'pb'):
        for f in glob.glob(f'{SRC}/{d}/en/*.md'):
            s = open(f).read()
            if 'NC' in ''.join(re.findall(r'License: *\[?([^\]\n]*)', s)):
                continue
            body = re.split(r'\n\* License', s)[0]
            title = re.match(r'# *(.*)', body)
            title = norm(title.group(1)) if title else ''
            body = re.sub(r'^# .*', '', body)
            body = norm(re.sub(r'\n##\s*\n', '\n\n', body).replace('##', ''))
            body = re.sub(r'\n{2,}', '\n', body)
            if len(body) < 150 or not mostly_ascii(body):
                continue
            docs.append({'t': f'{title}\n\n{body}'})
            if len(body) < 2500:
                docs.append({'m': [['user', R.choice(['Tell me a story called "{x}".', 'Write a children\'s story with the title "{x}".', 'Tell me a story. Title: {x}']).format(x=title)], ['assistant', body]]})
    write('storybooks', docs, 'CC BY 3.0/4.0 (African Storybook, Pratham Books)')


def fairy():
    docs, seen = [], set()
    for f in glob.glob(f'{SRC}/fairy/data-by-origin/**/*.csv', recursive=True):
        try:
            rows = list(csv.DictReader(open(f, newline='')))
        except Exception:
            continue
        if not rows:
            continue
        cols = rows[0].keys()
        if 'text' in cols and 'section' in cols:
            t = '\n\n'.join(norm(r['text'] or '') for r in rows)
            docs += [{'t': c} for c in chunks(t, 6500)]
    for f in glob.glob(f'{SRC}/fairy/data-by-origin/**/*question*.csv', recursive=True) + glob.glob(f'{SRC}/fairy/data-by-origin/**/*.csv', recursive=True):
        if f in seen:
            continue
        seen.add(f)
        try:
            rows = list(csv.DictReader(open(f, newline='')))
        except Exception:
            continue
        if not rows or 'question' not in rows[0]:
            continue
        base = f.replace('questions', 'sections_stories')
        sec = {}
        cand = [g for g in glob.glob(f'{SRC}/fairy/data-by-origin/**/*.csv', recursive=True)
                if os.path.basename(g).replace('-story', '') == os.path.basename(f).replace('-questions', '')]
        for g in cand:
            for r in csv.DictReader(open(g, newline='')):
                if 'section' in r and 'text' in r:
                    sec[str(r['section']).strip()] = norm(r['text'] or '')
        for r in rows:
            q, a = norm(r.get('question') or ''), norm(r.get('answer1') or '')
            s = sec.get(str(r.get('cor_section', '')).split(',')[0].strip())
            if s and q and a and len(s) < 1500:
                docs.append({'m': [['user', f'{s}\n\n{cap(q)}'], ['assistant', dot(cap(a))]]})
    write('fairytaleqa', docs, 'Apache-2.0 (FairytaleQA; public domain tales)')


# ---------------------------------------------------------------- dialogues
def clean_turns(ts):
    """merge same-speaker turns; start with user, end with assistant"""
    out = []
    for r, t in ts:
        t = norm(t)
        if not t:
            continue
        if out and out[-1][0] == r:
            out[-1][1] += ' ' + t
        else:
            out.append([r, t])
    while out and out[0][0] != 'user':
        out.pop(0)
    while out and out[-1][0] != 'assistant':
        out.pop()
    return out


def dialogues():
    docs = []
    for f in sorted(glob.glob(f'{SRC}/sgd/*/dialogues_*.json')):
        for d in json.load(open(f)):
            if R.random() < 0.55:
                m = clean_turns([('user' if t['speaker'] == 'USER' else 'assistant', t['utterance']) for t in d['turns']])
                if len(m) > 1:
                    docs.append({'m': m})
    write('sgd', docs, 'CC BY-SA 4.0 (Schema-Guided Dialogue, Google)')
    docs = []
    for f in sorted(glob.glob(f'{SRC}/tm/TM-4-2024/data/*.json')):
        for d in json.load(open(f)):
            m = clean_turns([('user' if t['speaker'] == 'user' else 'assistant', t['text']) for t in d['utterances']])
            if len(m) > 1:
                docs.append({'m': m})
    write('taskmaster4', docs, 'CC BY 4.0 (Taskmaster-4, Google)')
    docs = []
    for f in sorted(glob.glob(f'{SRC}/topical/conversations/*.json')):
        for d in json.load(open(f)).values():
            m = clean_turns([('user' if i % 2 == 0 else 'assistant', t['message']) for i, t in enumerate(d['content'])])
            if len(m) > 1:
                docs.append({'m': m})
    write('topical_chat', docs, 'CDLA-Sharing-1.0 (Topical-Chat, Amazon)')
    docs = []
    shows = {'brainscience': 1, 'founderstalk': 1, 'practicalai': .5, 'podcast': .25, 'friends': .3, 'jsparty': .15, 'gotime': .12, 'rfc': 1, 'spotlight': 1, 'afk': 1, 'backstage': 1}
    for show, frac in shows.items():
        for f in sorted(glob.glob(f'{SRC}/changelog/{show}/*.md')):
            if R.random() > frac:
                continue
            t = norm(open(f).read())
            t = re.sub(r'\\?\[\d+:\d+(:\d+)?(\.\d+)?\\?\]', '', t)
            t = re.sub(r'\*\*(.+?):\*\*', r'\1:', t).replace('*', '').replace('\\', '')
            t = re.sub(r'\[[^\]]{0,30}\]|\([^)]{0,12}\)', '', t)
            t = re.sub(r'\n+', '\n\n', t)
            t = re.sub(r'  +', ' ', t)
            docs += [{'t': c} for c in chunks(t, 6000) if len(c) > 400]
    write('changelog', docs, 'CC BY-SA 4.0 (Changelog podcast transcripts)')


# ---------------------------------------------------------------- knowledge
def trivia():
    docs = []
    for f in sorted(glob.glob(f'{SRC}/trivia/categories/*')):
        raw = open(f, encoding='latin-1').read()
        try:
            raw = raw.encode('latin-1').decode('utf8')
        except UnicodeError:
            pass
        for blk in raw.split('#Q ')[1:]:
            m = re.match(r'(.*?)\n\^ (.*?)\n(.*)', blk, re.S)
            if not m:
                continue
            q, a = norm(m.group(1)).replace('\n', ' '), norm(m.group(2))
            ops = [norm(x[2:]) for x in m.group(3).split('\n') if re.match(r'[A-D] ', x)]
            if len(q) > 220 or not mostly_ascii(q + a) or not a or a in ('True', 'False') and R.random() < .5:
                continue
            if a in ops and R.random() < 0.35 and len(ops) >= 2:
                docs.append({'m': [['user', q + '\n' + '\n'.join(f'{"ABCD"[j]}) {x}' for j, x in enumerate(ops[:4]))],
                                   ['assistant', f'{"ABCD"[ops.index(a)]}) {a}']]})
            elif not re.search(r'which of|of these|following|odd one|except|does not|not ', q, re.I):
                docs.append({'m': [['user', q], ['assistant', dot(cap(a))]]})
            else:
                docs.append({'t': q + '\n' + '\n'.join(f'{"ABCD"[j]}) {x}' for j, x in enumerate(ops[:4])) + f'\nAnswer: {a}'})
    write('opentriviaqa', docs, 'CC BY-SA 4.0 (OpenTriviaQA)')


def factbook():
    docs = []
    for f in sorted(glob.glob(f'{SRC}/factbook/*/*.json')):
        d = json.load(open(f))
        parts = []

        def walk(x, path):
            if isinstance(x, dict):
                if 'text' in x and isinstance(x['text'], str):
                    t = norm(html.unescape(re.sub(r'<[^>]+>', ' ', x['text'])))
                    if path[-1:] and 20 < len(t) < 1500:
                        parts.append(f'{path[-1]}: {t}')
                for k, v in x.items():
                    if k != 'text':
                        walk(v, path + [k])
        walk(d, [])
        try:
            name = d['Government']['Country name']['conventional short form']['text']
        except KeyError:
            continue
        if name == 'none':
            name = d['Government']['Country name'].get('conventional long form', {}).get('text', '')
        t = '\n'.join(parts)
        docs += [{'t': f'{name}\n\n{c}'} for c in chunks(t.replace('\n', '\n\n'), 5000)]
    write('factbook', docs, 'CC0 / public domain (CIA World Factbook)')


def wordnet_docs():
    import yaml
    Ld = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    docs, gl = [], {}
    for f in sorted(glob.glob(f'{SRC}/wn/src/yaml/*.yaml')):
        b = os.path.basename(f)
        if b.startswith('entries') or b == 'frames.yaml':
            continue
        for sid, s in yaml.load(open(f), Ld).items():
            gl[sid] = s
    json.dump({k: {'d': v.get('definition', [''])[0], 'e': [e if isinstance(e, str) else e.get('text', '') for e in v.get('example', [])],
                   'm': v.get('members', []), 'p': v.get('partOfSpeech'), 'h': v.get('hypernym', [])[:1]} for k, v in gl.items()},
              open(os.path.join(OUT, '_wn_synsets.json'), 'w'))
    senses = {}
    for f in sorted(glob.glob(f'{SRC}/wn/src/yaml/entries-*.yaml')):
        for w, e in yaml.load(open(f), Ld).items():
            senses[w] = {p: [s['synset'] for s in v.get('sense', [])] for p, v in e.items() if p in 'nvar'}
    json.dump(senses, open(os.path.join(OUT, '_wn_senses.json'), 'w'))
    for sid, s in gl.items():
        m = s.get('members', [])
        if not m or s.get('partOfSpeech') == 's' and R.random() < .3:
            continue
        d = s.get('definition', [''])[0]
        ex = [e if isinstance(e, str) else e.get('text', '') for e in s.get('example', [])]
        t = f'{m[0]}: {d}.'
        if len(m) > 1:
            t += ' Also: ' + ', '.join(m[1:4]) + '.'
        if ex:
            t += ' Example: ' + dot(cap(ex[0].strip('"')))
        docs.append(t)
    R.shuffle(docs)
    out = []
    for i in range(0, len(docs), 6):
        out.append({'t': norm('\n'.join(docs[i:i + 6]))})
    write('wordnet', out, 'CC BY 4.0 (Open English WordNet)')


def misc():
    docs = []
    for f in sorted(glob.glob(f'{SRC}/gsm/grade_school_math/data/*.jsonl')):
        for l in open(f):
            d = json.loads(l)
            a = re.sub(r'<<.*?>>', '', d['answer'])
            a = re.sub(r'\n#### *(.*)', r'\nThe answer is \1.', a)
            docs.append({'m': [['user', norm(d['question'])], ['assistant', norm(a)]]})
    write('gsm8k', docs, 'MIT (GSM8K, OpenAI)')
    docs = []
    for fn, lim in (('Roleplay/roleplay-simple-deduped-roleplay-instruct.json', 900), ('Codegen/codegen-instruct.json', 700)):
        for d in json.load(open(f'{SRC}/gpteacher/{fn}')):
            q = d['instruction'] + ('\n' + d['input'] if d.get('input') else '')
            a = d['response']
            if len(q) < 500 and 5 < len(a) < lim and mostly_ascii(a):
                docs.append({'m': [['user', UNIRE.sub(lambda m: UNI[m.group()], q.strip())], ['assistant', UNIRE.sub(lambda m: UNI[m.group()], a.strip())]]})
    write('gpteacher', docs, 'MIT (GPTeacher; machine generated)')
    docs = []
    for f in glob.glob(f'{SRC}/oa/model/model_eval/manual/data/en_100_tree.jsonl'):
        for l in open(f):
            def walk(n, hist):
                h = hist + [['user' if n['role'] == 'prompter' else 'assistant', n['text'].strip()]]
                kids = [k for k in n.get('replies', []) if not k.get('deleted')]
                if h[-1][0] == 'assistant' and sum(len(x[1]) for x in h) < 3000:
                    docs.append({'m': [list(x) for x in h]})
                for k in kids[:2]:
                    walk(k, h)
            walk(json.loads(l)['prompt'], [])
    write('oasst_sample', docs, 'Apache-2.0 (OpenAssistant sample trees)')
    docs = []
    for f in glob.glob(f'{SRC}/selfinst/**/*.jsonl', recursive=True):
        for l in open(f):
            d = json.loads(l)
            for i in d.get('instances', [])[:1]:
                q = d['instruction'] + ('\n' + i['input'] if i.get('input') else '')
                if i.get('output') and len(i['output']) < 1200:
                    docs.append({'m': [['user', q.strip()], ['assistant', i['output'].strip()]]})
    write('selfinstruct_human', docs, 'Apache-2.0 (Self-Instruct seed tasks and user-oriented set, human written)')
    docs = []
    for f in glob.glob(f'{SRC}/pz/**/*.jsonl', recursive=True):
        for l in open(f):
            d = json.loads(l)
            m = [[x['role'], UNIRE.sub(lambda m: UNI[m.group()], x['content'].strip())] for x in d['messages']]
            docs.append({'m': m})
    write('open_datasets', docs, 'MIT (paredezadrian/open-datasets)')
    docs = []
    for d in json.load(open(f'{SRC}/jokes/jokes/index.json')):
        docs.append({'m': [['user', R.choice(['Tell me a joke.', 'Tell me another joke.', 'Make me laugh.', 'Do you know any jokes?', 'Tell me a funny joke.'])],
                           ['assistant', norm(d['setup']) + ' ' + norm(d['punchline'])]]})
    # jokes carry no clear licence file: not written
    docs = []
    for f in glob.glob(f'{SRC}/ose/Texts-SeparatedByReadingLevel/**/*.txt', recursive=True):
        t = norm(open(f, encoding='utf8', errors='ignore').read())
        t = re.sub(r'^(Intermediate|Elementary|Advanced)\s*\n', '', t)
        docs += [{'t': c} for c in chunks(t, 6000)]
    write('onestop', docs, 'CC BY-SA 4.0 (OneStopEnglish)')
    docs = []
    for f in glob.glob(f'{SRC}/wikisplit/*.tsv'):
        for l in open(f):
            s = l.rstrip('\n').split('\t')
            if len(s) == 2:
                a, b = [detok(norm(x.replace('<::::>', ' '))) for x in s]
                docs.append({'t': b})
                if R.random() < .25:
                    docs.append({'m': [['user', R.choice(['Split this into two sentences: ', 'Rewrite this as two shorter sentences: ']) + a], ['assistant', b]]})
    write('wikisplit', docs, 'CC BY-SA 4.0 (WikiSplit, Google)')
    docs = []
    for f in sorted(glob.glob(f'{SRC}/tldr/pages/common/*.md') + glob.glob(f'{SRC}/tldr/pages/linux/*.md')):
        s = open(f).read()
        name = os.path.basename(f)[:-3]
        desc = re.findall(r'^> (.*)', s, re.M)
        desc = [x for x in desc if not x.startswith(('More information', 'See also', 'Note'))]
        items = re.findall(r'^- (.*?):\n\n`(.*?)`', s, re.M)
        if not items or not desc:
            continue
        cl = lambda x: re.sub(r'\{\{(\[)?(.*?)(\])?\}\}', lambda m: m.group(2).split('|')[0], x).replace('[', '').replace(']', '')
        nb = lambda x: x.replace('[', '').replace(']', '')
        docs.append({'t': f'{name}: {desc[0]}\n' + '\n'.join(f'- {nb(a)}: {cl(b)}' for a, b in items[:6])})
        if R.random() < .4:
            docs.append({'m': [['user', R.choice(['What does the {x} command do?', 'What is {x} in Linux?', 'Explain the {x} command.']).format(x=name)], ['assistant', desc[0].replace('`', '')]]})
            a, b = R.choice(items[:3])
            a = re.sub(r'[\[\]`]', '', a)
            docs.append({'m': [['user', R.choice(['Linux command: {x}.', 'What is the command to {x}?', 'How do I {x} on the command line?']).format(x=a[:1].lower() + a[1:])], ['assistant', cl(b)]]})
    write('tldr', docs, 'CC BY 4.0 (tldr-pages)')
    docs = []
    for f in glob.glob(f'{SRC}/s30/content/snippets/**/*.md', recursive=True):
        s = open(f).read()
        s = re.sub(r'^---.*?---', '', s, flags=re.S)
        s = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', s)
        s = UNIRE.sub(lambda m: UNI[m.group()], s).strip()
        if len(s) > 200:
            docs += [{'t': c} for c in chunks(s, 5000)]
    write('snippets', docs, 'CC BY 4.0 (30 seconds of code)')
    docs = []
    for f in glob.glob(f'{SRC}/gsa/**/*.md', recursive=True) + glob.glob(f'{SRC}/f18/**/*.md', recursive=True):
        s = open(f, errors='ignore').read()
        s = re.sub(r'^---.*?\n---', '', s, flags=re.S)
        s = re.sub(r'\{[{%].*?[}%]\}|<[^>]+>', ' ', s, flags=re.S)
        s = re.sub(r'!\[[^\]]*\]\([^)]*\)', '', s)
        s = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', s)
        s = norm(s.replace('**', '').replace('*', '-'))
        s = '\n\n'.join(p for p in s.split('\n\n') if not re.search(r'https?://|\{|\|', p))
        if len(s) > 500 and mostly_ascii(s):
            docs += [{'t': c} for c in chunks(s, 6000) if len(c) > 200]
    write('usgov_blogs', docs, 'CC0 / public domain (Digital.gov, 18F)')
    docs = []
    for f in glob.glob(f'{SRC}/recipes/**/content/*.md', recursive=True):
        s = open(f, errors='ignore').read()
        m = re.search(r'title: *"?(.*?)"?\n', s)
        s = re.sub(r'^---.*?\n---', '', s, flags=re.S)
        s = re.sub(r'!\[[^\]]*\]\([^)]*\)', '', s)
        s = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', s)
        s = re.sub(r'## Contrib.*', '', s, flags=re.S)
        s = norm(s.replace('**', ''))
        if m and 150 < len(s) < 3500 and mostly_ascii(s):
            docs.append({'t': m.group(1) + '\n\n' + s})
            docs.append({'m': [['user', R.choice(['Give me a recipe for {x}.', 'How do I make {x}?', 'I want to cook {x}. What is the recipe?']).format(x=m.group(1).lower())], ['assistant', s]]})
    write('recipes', docs, 'Unlicense / public domain (public-domain-recipes, based.cooking)')
    import yaml
    docs = []
    skip = {'politics', 'gossip', 'botprofile', 'ai'}
    for f in glob.glob(f'{SRC}/cb/**/english/*.yml', recursive=True):
        if os.path.basename(f)[:-4] in skip:
            continue
        d = yaml.safe_load(open(f))
        for c in d.get('conversations', []):
            m = [['user' if i % 2 == 0 else 'assistant', norm(str(x))] for i, x in enumerate(c)]
            if len(m) % 2:
                m.pop()
            if m:
                docs.append({'m': m})
    write('chatterbot', docs, 'BSD-3-Clause (chatterbot-corpus)')


# ---------------------------------------------------------------- second phase: honest "I don't know" for long-tail questions
UNSURE = ["I'm not sure about that. I'm a small model and know only a little.", "I don't know the answer to that. A larger model may be able to help.", "Sorry, I don't know that.", "I'm sorry, I don't know the answer.",
          "That's a good question, but I don't know the answer.", "I'm not sure. I'm only a tiny model, so please check another source."]


BADW = re.compile(r'\b(sex\w*|porn\w*|penis|vagina|boob\w*|breasts?|naked|nude|lube|condom\w*|fuck\w*|shit\w*|bitch\w*|ass|asshole|whore|slut|dick|cock|rape\w*|nigg\w*|fag\w*|cocaine|heroin|weed|boner|orgasm|erotic|prostitut\w*|strip club)\b', re.I)


def unsure():
    known = []
    kd = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'knowledge')
    for l in open(f'{kd}/qa.txt'):
        if not l.startswith('#'):
            known += [set(re.findall(r'[a-z0-9]+', q.lower())) for q in re.split(r'(?<=[?.]);', l.split(' | ')[0])]
    names = set()
    for f in ('facts.txt', 'people.txt'):
        for l in open(f'{kd}/{f}'):
            if not l.startswith('#'):
                names |= {re.sub(r'^(a|an|the) ', '', n.strip().lower()) for n in l.split(' | ')[0].split(';')}
    qs = []
    for name, d, lic in ni_load():
        if re.search(r'naturalquestion_answer|freebase_qa_answer|hotpotqa_question_answering|triviaqa_answer', name):
            qs += [norm(i['input']).replace('Question:', '').strip() for i in d['Instances']]
        elif 'piqa_answer' in name:
            qs += [norm(i['input']) for i in d['Instances'] if norm(i['input']).lower().startswith('how') and R.random() < .6]
    for f in sorted(glob.glob(f'{SRC}/trivia/categories/*')):
        for blk in open(f, encoding='latin-1').read().split('#Q ')[1:]:
            q = norm(blk.split('\n^')[0]).replace('\n', ' ')
            if q.endswith('?') and not re.search(r'which of|of these|following', q, re.I) and R.random() < .5:
                qs.append(q)
    docs, drop = [], 0
    for q in qs:
        if not (15 < len(q) < 140) or not mostly_ascii(q):
            continue
        w = set(re.findall(r'[a-z0-9]+', q.lower()))
        m = re.match(r'(?:what|who) (?:is|are|was|were) (?:a |an |the )?([a-z ]+)\??$', q.lower())
        if re.search(r'capital|currency of|continent', q.lower()) or (m and m.group(1).strip() in names) or any(len(w & k) >= .75 * len(w | k) for k in known):
            drop += 1
            continue
        if q[-1] not in '?.':
            q += '?'
        if R.random() < .75:
            q = cap(q)
        docs.append({'m': [['user', q], ['assistant', R.choice(UNSURE)]]})
    print('unsure dropped', drop)
    write('unsure', docs, 'questions from Natural Instructions (CC BY / CC BY-SA / Apache / AFL tasks) and OpenTriviaQA (CC BY-SA 4.0), our answers')
    longtail = {d['m'][0][1].lower().rstrip('?.') for d in docs} | {q.lower().rstrip('?.') for q in qs}
    keep = []
    for l in open(os.path.join(OUT, 'ni_chat.jsonl')):
        d = json.loads(l)
        q = d['m'][0][1]
        if q.lower().rstrip('?.') in longtail or re.search(r'\bname (something|a|an|the|one)\b|besides', q, re.I) or BADW.search(q + d['m'][1][1]):
            continue
        keep.append(d)
    write('ni_chat2', keep, 'ni_chat without the long-tail questions')


if __name__ == '__main__':
    only = sys.argv[3:]
    for fn in (ni, se, openstax, kids, fairy, dialogues, trivia, factbook, wordnet_docs, misc, unsure):
        if not only or fn.__name__ in only:
            fn()
    json.dump(STATS, open(os.path.join(OUT, '_stats.json'), 'w'))
    print('total MB', sum(s[3] for s in STATS) / 1e6)
