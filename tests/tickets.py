"""Tickets of an invented shop's help desk: thirteen intents with sixteen texts each.

All texts were made up for these tests and are in the public domain (CC0). The first eight texts of an intent
are for training and the others for testing.
"""

from __future__ import annotations

TRAINED = 8
ADDED = "gift card"
ADDED_WORDS = "buying or using a gift card"

# One text a line.
_TEXTS = {
    "late_delivery": """
My parcel should have been here on Monday and it is Friday now.
The tracking page has not moved for six days.
How much longer do I have to wait for my shoes?
You promised two days, and I am still waiting after nine.
Is there any news about my shipment? It is overdue.
The courier never turned up yesterday as announced.
I ordered three weeks ago and nothing has arrived.
When will my order finally get here?
Still no sign of the lamp I bought last month.
The delivery date has been pushed back twice already.
Where is my package? It was due last Tuesday.
It says out for delivery since Wednesday, but nobody came.
My order is running very late and I need it for a wedding.
The box seems to be stuck in a depot somewhere.
Nothing in the post again today. What is going on?
Could you find out why the shipment is taking this long?
""",
    "return_item": """
I would like to send the jacket back.
How do I return something I do not want any more?
Do you have a label for sending goods back to you?
The chair does not suit our room, so it has to go back.
How many days do I have to return a purchase?
Can I bring an online order back to one of your stores?
Where do I post the trousers I am returning?
I changed my mind about the kettle and want to return it.
What is the procedure for sending an article back?
Is returning goods free of charge?
I need a return slip, mine was not in the box.
Can the rug be collected from my home if I send it back?
The headphones are not for me. How can I give them back?
Am I still within the period for returns?
Please tell me the address that returned goods go to.
I want to hand the blender back, it is unused.
""",
    "refund_missing": """
I sent the boots back a month ago and have not got my money.
When will the refund show up on my account?
You confirmed my refund, but nothing was credited.
How long does it take until I am paid back?
My bank says that no repayment from you has come in.
Only half of the amount has been refunded.
I am still waiting for my money for the cancelled order.
The refund went to a card that I no longer have.
Where is the money for the coat I returned?
It has been ten working days and I have not been reimbursed.
The repayment is eight euros short.
You owe me forty euros for the returned blanket.
I was told the refund was on its way, but my balance is unchanged.
Why is my reimbursement taking so long?
Nothing has been paid back to me yet.
To which account did you send my refund?
""",
    "change_address": """
I am moving next week, please send it to my new flat.
The street in my order is wrong, can you correct it?
Could the parcel go to my office instead?
I forgot the house number in the shipping address.
Please update where my orders are sent.
My postcode has changed.
Can I have it delivered to my neighbour rather than to me?
I typed the old town by mistake, the address must be changed.
We have moved house, how do I enter the new address?
Please redirect the shipment to my parents' place.
The flat number is missing from the delivery details.
I would like another delivery address for this order.
There is a spelling mistake in my street name.
Can you ship to my workplace, since nobody is at home?
My account still shows where I lived before.
Send it to a different city, please, I am staying with a friend.
""",
    "cancel_order": """
Please cancel my order, I do not need it any more.
I bought the same thing twice by accident, please stop one of them.
Is it too late to call off the purchase from this morning?
I want to withdraw from my order before it ships.
Do not send the table, I found one elsewhere.
How can I cancel something I have just ordered?
Kindly delete order 4711.
I clicked buy by mistake and want to undo it.
Can you stop my order? I have decided against it.
I no longer want the bicycle I ordered an hour ago.
Please annul the purchase of the two lamps.
My child ordered this without asking, so please cancel.
There is no cancel button next to my order.
Remove one of my two identical orders, please.
I would like to call the whole order off.
Has my cancellation gone through?
""",
    "wrong_size": """
The shoes are too small, can I have them one size larger?
I need the shirt in medium and not in large.
Can I swap the dress for a bigger one?
The trousers are too long, I would like a shorter pair.
I ordered size 38 but need 40.
The gloves do not fit, may I exchange them?
Please exchange the coat for a smaller size.
The ring is far too tight for my finger.
These boots pinch, please send me a 43 instead.
The jumper is huge on me. Do you swap it for a small?
Is it possible to trade the jeans for another size?
The hat keeps sliding over my eyes, I want a narrower one.
I picked the wrong size and would like an exchange.
My daughter needs the next size up.
The belt is two sizes too big.
Can the sandals be exchanged for a wider fit?
""",
    "damaged_item": """
The vase arrived in pieces.
There is a deep scratch on the screen of my new phone.
One leg of the chair was broken when I opened the box.
The bottle had leaked all over the parcel.
The zip of the bag tore on the first day.
My kettle does not switch on, it must be defective.
The mirror came with a crack right across it.
The cover of the book is torn and dirty.
Two of the six glasses were smashed.
The toaster stopped working after one use.
The table top has a big dent.
My speaker makes a rattling noise, I think it is faulty.
The package was crushed and the cake tin inside is bent.
A seam of the tent was ripped from the start.
The lamp flickers and then goes out.
What I received is broken.
""",
    "payment_declined": """
My card was refused at the checkout.
The payment fails every time I try.
Why can I not pay with my credit card?
It says that the transaction was declined by the bank.
Your shop does not accept my card number.
I get an error when I press pay.
The payment page just keeps loading and then gives up.
My direct debit was rejected.
Checkout tells me that my card is not valid, but it is.
I have tried three cards and none went through.
The bank did not authorise the purchase, although I have enough money.
Paying by transfer does not work on your site.
Every attempt to pay ends with a red message.
My payment could not be processed, what now?
The security code of my card is rejected.
I cannot complete the purchase since the charge bounces.
""",
    "login_problem": """
I forgot my password.
The website does not let me sign in.
The link for a new password never comes.
My account is locked after too many attempts.
I cannot log in with my email address any more.
How can I reset my password?
It says that my user name is unknown.
The code for signing in does not arrive on my phone.
I am unable to get into my account.
My password is not accepted, although it is right.
How do I choose a new password?
The app throws me out as soon as I sign in.
The login page says that my account is blocked.
I have a new phone and cannot confirm my sign-in.
Which email did I register with? I cannot enter.
The reset link has expired before I could use it.
""",
    "invoice_copy": """
Could you send me the invoice again?
I need a receipt with my company's name for the tax office.
There was no bill in the parcel.
Where can I download my invoices?
The VAT number is missing on the bill.
Please issue an invoice in the name of our firm.
My accountant asks for a copy of the bill from March.
I cannot open the PDF of my invoice.
I require a proper receipt for my expenses.
The bill has the wrong company name, please make a new one.
How do I get last year's invoices?
Please mail me the paperwork showing what I paid and the tax.
My employer pays only with an invoice, can I have one?
I lost the receipt for the sewing machine.
An itemised bill would help me with my tax return.
I never got a bill for my last purchase.
""",
    "stock_question": """
When will the blue backpack be available again?
Is the oak desk in stock?
Can you tell me if you will get more of these mugs?
The tent is sold out, will there be a new batch?
Do you have this shirt in green?
Please notify me when the scooter is back.
How many of the small pots are left?
Is this article discontinued?
Will the red kettle be restocked?
The page says that the lamp is unavailable. For how long?
Have you still got the wooden train in your warehouse?
Are there any of the winter boots left in black?
I am looking for the large umbrella, but it is out of stock.
Do you plan to sell the striped rug again?
Tell me as soon as the coffee grinder can be ordered again.
Does the Leeds store have the garden bench?
""",
    "discount_code": """
My voucher code does not work.
The ten percent off was not taken from the total.
Where do I enter the promotion code?
The coupon from your newsletter is said to be invalid.
Can I use two discount codes together?
I forgot to type in my code before paying.
Is there a reduction for students?
The sale price is not shown in my basket.
The code SPRING gives me an error.
My coupon has expired, can you extend it?
I did not get the reduced price that was advertised.
Does the promotion apply to shoes too?
How can I get money off as a new customer?
The discount vanished when I changed the quantity.
Do you have any offers or coupons at the moment?
I was charged the full price in spite of my promo code.
""",
    ADDED: """
I would like to buy a gift card for my sister.
How much money is left on my gift card?
Can I print a gift card at home?
My gift card was never delivered by email.
Which amounts do your gift cards have?
How long is a gift card valid?
Can I pay part of my order with a gift card?
I lost the gift card that I got for my birthday.
Do you sell gift cards in your stores?
Where do I see the balance of my gift card?
I want to give my father a card with fifty euros on it for your shop.
Can two gift cards be used for one purchase?
Does a gift card run out after some time?
Please send the gift card straight to my friend with a greeting.
How do I redeem the gift card I was given at Christmas?
Is it possible to top up a gift card?
""",
}

TICKETS = {label: texts.strip().splitlines() for label, texts in _TEXTS.items()}
INTENTS = [label for label in TICKETS if label != ADDED]


def tickets(labels: list[str], *, trained: bool) -> list[tuple[str, str]]:
    """The texts of some intents for training, or those for testing, each with its intent."""
    part = slice(None, TRAINED) if trained else slice(TRAINED, None)
    return [(text, label) for label in labels for text in TICKETS[label][part]]
