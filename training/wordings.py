"""Words and phrases of the exercises: attributes of a subject, in several wordings, and requests.

None of the words in `bench/embedded_model/words.py` may be used here.
"""

from __future__ import annotations

__all__ = [
    "ASKS", "ATTRIBUTES", "COLOR_WORDS", "FILLER", "KEYS", "MOODS", "PREAMBLES", "PRIORITIES", "SECTIONS", "TOOL_NOUNS",
    "TOOL_VERBS",
]  # fmt: skip

COLOR_WORDS = (
    "red blue green black white yellow orange purple brown gray grey pink silver gold navy cyan magenta lime khaki "
    "ivory scarlet bronze copper cream plum peach mint ruby emerald sapphire charcoal tan rose lavender ochre azure"
).split()

# key: phrases that follow the name of a subject; {v} is the value.
ATTRIBUTES: dict[str, str] = {
    "age": "is {v} years old|is {v}|turned {v}|, aged {v},|has been alive for {v} years|is a {v}-year-old",
    "city": "lives in {v}|comes from {v}|is from {v}|works in {v}|went to {v}|stays in {v}|grew up in {v}|"
    "settled in {v}",
    "company": "works at {v}|works for {v}|joined {v}|is employed by {v}|runs {v}|left {v}|speaks for {v}",
    "job": "is a {v}|works as a {v}|was hired as a {v}|earns money as a {v}",
    "email": "has the email {v}|writes from {v}|uses {v}|can be mailed at {v}|({v})|gave the address {v}",
    "phone": "has the number {v}|calls from {v}|picks up at {v}|can be phoned at {v}|({v})",
    "date": "arrived on {v}|ordered on {v}|is booked for {v}|wrote on {v}|signed on {v}|comes on {v}|starts on {v}",
    "birth_date": "was born on {v}|has a birthday, {v},|came into the world on {v}",
    "product": "bought the {v}|sells the {v}|likes the {v}|returns the {v}|asks for the {v}|needs a {v}|took the {v}",
    "color": "prefers {v}|wants it in {v}|painted the door {v}|wears {v}|chose {v}|drives a {v} car|likes {v} best",
    "quantity": "wants {v} of them|ordered {v} pieces|needs {v} more|took {v}|counted {v} boxes|has {v} left",
    "price": "paid {v}|owes {v}|spent {v}|sells it for {v}|offers {v}|pays {v} a month",
    "order_number": "has order {v}|placed order {v}|holds ticket {v}|asks about order {v}|quotes the number {v}",
    "hobby": "likes {v}|enjoys {v}|is good at {v}|spends weekends {v}",
    "language": "speaks {v}|learns {v}|teaches {v}|answers in {v}",
    "street": "lives at {v}|has an office at {v}|moved to {v}",
    "username": "logs in as {v}|is known as {v}|posts as {v}",
    "status": "has the status {v}|is marked {v}|is now {v}",
    "animal": "has a {v}|feeds a {v}|lost a {v}",
    "url": "has a page at {v}|links to {v}|points to {v}",
    "time": "comes at {v}|calls at {v}|leaves at {v}",
}

# Other names of the same thing, as schemas have them.
KEYS: dict[str, str] = {
    "name": "name full_name person customer who client contact author", "age": "age years",
    "city": "city town place location home", "company": "company employer firm organisation",
    "job": "job occupation role profession job_title", "email": "email mail email_address contact_email",
    "phone": "phone phone_number telephone number mobile", "date": "date day when on start_date",
    "birth_date": "birth_date born birthday date_of_birth", "product": "product item thing article product_name",
    "color": "color colour", "quantity": "quantity count amount pieces how_many", "price": "price cost amount total",
    "order_number": "order_number order reference order_id number", "hobby": "hobby interest",
    "language": "language", "street": "street address street_address", "username": "username login handle user",
    "status": "status state", "animal": "animal pet", "url": "url link website page", "time": "time hour at",
}  # fmt: skip

ASKS = (
    "{}|{}|{}|{}|Extract the data: {}|{} Write that as JSON.|Read: {}|Text: {}|{} Extract it.|Fill in the fields. {}|"
    "What does this say? {}|Turn this into JSON: {}|{} Give me the details.|Find the fields in this text: {}|"
    "From the text below, take the values.\n{}|{}\nReturn JSON.|Note: {}|Parse this message. {}|Summarise as JSON: {}|"
    'Message from a customer: {}|{} Answer in JSON.|Use only what is said here: {}|Here is a note: "{}"'
).split("|")

PREAMBLES = (
    "You are a helpful assistant.|Answer in JSON.|You extract data from text.|Be brief.|You call tools.|"
    "Follow the schema.|You are an assistant that answers with JSON only.|Use the words of the user."
).split("|")

FILLER = (
    "The weather was fine.|We met last week.|Thanks for your help.|It took a while.|Let me know if that works.|"
    "I hope you are well.|This is urgent.|Nothing else has changed.|We talked about it before.|Please check.|"
    "The rest is not important.|As you know, we moved.|Have a nice day.|The meeting was long.|I will write again."
).split("|")

MOODS: dict[str, str] = {
    "positive": "good great excellent wonderful lovely perfect happy delighted glad pleased superb fantastic nice "
                "beautiful brilliant enjoyable satisfied amazing charming fine",
    "negative": "bad awful terrible horrible broken useless poor sad angry disappointed upset ugly worthless faulty "
                "dreadful annoying unhappy boring damaged waste",
}  # fmt: skip

SECTIONS: dict[str, str] = {
    "billing": "invoice charged payment refund bill price receipt fee money paid cost card",
    "delivery": "parcel courier package shipping arrived truck late door box tracking delivered post",
    "login": "password account username sign login locked code access reset email log",
    "technical": "crash error screen bug freezes update install slow app crashes broken server",
    "food": "soup bread cheese dinner cook taste salad rice cake recipe lunch kitchen",
    "sport": "match goal team race player score coach ball run league win training",
    "travel": "flight hotel train ticket airport beach trip passport luggage tour map journey",
    "music": "song guitar concert album singer band piano melody drum dance choir radio",
    "health": "doctor pain fever medicine hospital nurse sleep cough heart tooth pill clinic",
    "weather": "rain snow wind sun storm cloud cold warm fog ice temperature sky",
}

PRIORITIES = "low medium high urgent normal critical minor major open closed pending done new old".split()

TOOL_VERBS = (
    "find:find search locate|create:create make add|delete:delete remove drop|update:update change edit correct|"
    "send:send mail forward|book:book reserve|get:get fetch show|list:list enumerate|open:open start|"
    "close:close shut end|buy:buy purchase|"
    "call:call phone ring|check:check verify inspect|print:print|share:share pass|pay:pay settle|"
    "track:track follow|plan:plan arrange|translate:translate|stop:stop halt pause|play:play|rename:rename|copy:copy"
).split("|")  # fmt: skip
TOOL_NOUNS = (
    "order:order purchase|contact:contact person|event:event meeting|table:table seat|ticket:ticket case|"
    "account:account profile|invoice:invoice bill|file:file document|route:route way|price:price cost|user:user member|"
    "weather:weather forecast|message:message note|flight:flight plane|room:room|customer:customer client|"
    "product:product article|task:task job|report:report summary|payment:payment transfer|item:item thing|"
    "reminder:reminder alarm|song:song music|recipe:recipe dish|car:car|stock:stock supply"
).split("|")  # fmt: skip
